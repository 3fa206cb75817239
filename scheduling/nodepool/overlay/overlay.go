// Package overlay reads NodeOverlays of karpenter.sh/v1alpha1, which correct prices and add
// resources of instance types.
package overlay

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/internal/strictjson"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
	"github.com/joinery-sdk/joinery/scheduling/nodepool/internal/nodespec"
)

// APIVersion is the version that [Decode] reads.
const APIVersion = "karpenter.sh/v1alpha1"

// NodeOverlay corrects the instance types and offerings that meet its requirements. It must not be
// modified. The zero value applies to all and changes nothing.
type NodeOverlay struct {
	// Name identifies the overlay.
	Name string
	// Metadata is the metadata of the object.
	Metadata metav1.ObjectMeta
	// Weight orders overlays: the heaviest one that sets a value is used. It is 1 to 10,000, or 0
	// if not stated.
	Weight int32
	// Requirements are what an offering must meet; the zero Set means every offering.
	Requirements requirements.Set
	// Price replaces the price; nil leaves it. It is per hour, in the currency of the price list.
	Price *float64
	// Adjustment is added to the price: an amount per hour, or a percentage of the price if Percent
	// is set. 0 changes nothing.
	Adjustment float64
	Percent    bool
	// Capacity is added to that of types, or replaces their resources of the same name: extended
	// resources only.
	Capacity corev1.ResourceList
}

// Adjust returns the price per hour with the overlay, given the price without it. It is never below
// 0.
func (o NodeOverlay) Adjust(price float64) float64 {
	switch {
	case o.Price != nil:
		return *o.Price
	case o.Percent:
		return max(0, price*(1+o.Adjustment/100))
	default:
		return max(0, price+o.Adjustment)
	}
}

type wireOverlay struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   metav1.ObjectMeta `json:"metadata"`
	Spec       struct {
		Requirements    []nodespec.Requirement `json:"requirements"`
		PriceAdjustment *string                `json:"priceAdjustment"`
		Price           *string                `json:"price"`
		Capacity        corev1.ResourceList    `json:"capacity"`
		Weight          *int32                 `json:"weight"`
	} `json:"spec"`
	Status json.RawMessage `json:"status"`
}

// Decode reads a NodeOverlay from JSON. The error joins one [*nodepool.FieldError] for each
// problem, or says in which line data is not JSON. The cost is linear in the size of data.
func Decode(data []byte) (NodeOverlay, error) {
	n, err := strictjson.Parse(data)
	if err != nil {
		return NodeOverlay{}, fmt.Errorf("overlay: %w", err)
	}
	d := strictjson.Decoder{Live: true}
	var w wireOverlay
	r := nodespec.NewReport(d.Decode(&n, &w))
	if w.Kind != "NodeOverlay" || w.APIVersion != APIVersion {
		r.Add("apiVersion", "%q %q is not a NodeOverlay of %s", w.APIVersion, w.Kind, APIVersion)
	}
	o := NodeOverlay{Name: w.Metadata.Name, Metadata: w.Metadata, Capacity: w.Spec.Capacity}
	r.Name("metadata.name", o.Name)
	const heaviest = 10_000
	nodespec.Range(r, "spec.weight", w.Spec.Weight, 1, heaviest)
	if w.Spec.Weight != nil {
		o.Weight = *w.Spec.Weight
	}
	o.Requirements, _ = r.Requirements("spec.requirements", w.Spec.Requirements, nodespec.Rules{NoMinValues: true})
	for i, w := range w.Spec.Requirements { // pools may have such an element
		if w.Operator == string(requirements.OpNotIn) && len(w.Values) == 0 {
			r.Add(fmt.Sprintf("spec.requirements[%d].values", i), "operator NotIn needs at least one value")
		}
	}
	r.Quantities("spec.capacity", o.Capacity)
	for _, name := range []corev1.ResourceName{"cpu", "memory", "ephemeral-storage", "pods"} {
		if _, ok := o.Capacity[name]; ok {
			r.Add("spec.capacity"+strictjson.MapKey(string(name)), "an overlay cannot change %s, only extended resources", name)
		}
	}
	if w.Spec.Price != nil {
		o.price(r, *w.Spec.Price)
	}
	if w.Spec.PriceAdjustment != nil {
		o.adjustment(r, *w.Spec.PriceAdjustment)
		if w.Spec.Price != nil {
			r.Add("spec.priceAdjustment", "set either price or priceAdjustment, not both")
		}
	}
	object := strings.TrimSpace(w.Kind + " " + o.Name)
	if err := nodespec.Join(r.Problems, func(path, detail string) error {
		return &nodepool.FieldError{Object: object, Path: path, Detail: detail}
	}); err != nil {
		return NodeOverlay{}, err
	}
	return o, nil
}

func (o *NodeOverlay) price(r *nodespec.Report, text string) {
	price, err := strconv.ParseFloat(text, 64)
	if err != nil || !regexp.MustCompile(`^\d+(\.\d+)?$`).MatchString(text) {
		r.Add("spec.price", "%s: want a price per hour such as \"1.25\"", strictjson.Quote(text))
		return
	}
	o.Price = &price
}

// adjustment reads an amount or a percentage, each with its sign. A percentage subtracts at most
// 100.
func (o *NodeOverlay) adjustment(r *nodespec.Report, text string) {
	digits, percent := strings.CutSuffix(text, "%")
	value, err := strconv.ParseFloat(digits, 64)
	if err != nil || !regexp.MustCompile(`^[+-](\d+(\.\d+)?|\.\d+)$`).MatchString(digits) {
		r.Add("spec.priceAdjustment", "%s: want an amount or a percentage with its sign, such as \"-0.10\" or \"+15%%\"", strictjson.Quote(text))
		return
	}
	if percent && value < -100 {
		r.Add("spec.priceAdjustment", "%s: a price can fall by at most 100%%", strictjson.Quote(text))
		return
	}
	o.Adjustment, o.Percent = value, percent
}
