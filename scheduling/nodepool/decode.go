package nodepool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/internal/strictjson"
	"github.com/joinery-sdk/joinery/scheduling/nodepool/internal/nodespec"
)

// Decode reads a Provisioner or NodePool from JSON; for YAML, convert it with yaml.YAMLToJSON of
// sigs.k8s.io/yaml. The error joins a [*FieldError] for each problem, or names the line where data
// is not JSON. Unlike in a cluster, the reference to a node class may be missing. The cost is
// linear in the size of data.
func Decode(data []byte) (NodePool, error) {
	root, err := strictjson.Parse(data)
	if err != nil {
		hint := ""
		if !strings.HasPrefix(strings.TrimSpace(string(data)), "{") {
			hint = " (want a JSON object; is this YAML? convert it first)"
		}
		return NodePool{}, fmt.Errorf("nodepool: %w%s", err, hint)
	}
	return decode(&root)
}

// DecodeObject reads a NodePool of karpenter.sh/v1 from any Go value whose JSON is that of a pool,
// such as a pointer to Karpenter's own type. Clients drop apiVersion and kind, so these may be
// missing. Everything else is as for [Decode].
func DecodeObject(object any) (NodePool, error) {
	root, err := nodespec.Object(object, V1, "NodePool")
	if err != nil {
		return NodePool{}, fmt.Errorf("nodepool: %w", err)
	}
	return decode(&root)
}

func decode(n *strictjson.Node) (NodePool, error) {
	if n.Kind != strictjson.Object {
		return NodePool{}, fieldErrors("", []strictjson.Problem{{Detail: fmt.Sprintf("want an object, got %s", n.Kind)}})
	}
	var d strictjson.Decoder
	var head wireHead
	d.Decode(n, &head) // its errors are found again once the version is known
	var name string
	if meta := n.Get("metadata"); meta != nil && meta.Get("name") != nil {
		name = meta.Get("name").Text
	}
	object := strings.TrimSpace(head.Kind + " " + name)
	var p NodePool
	var problems []strictjson.Problem
	switch {
	case head.Kind == "Provisioner" && head.APIVersion == V1Alpha5:
		p, problems = decodeProvisioner(n)
	case head.Kind == "NodePool" && head.APIVersion == V1Beta1:
		p, problems = decodeV1Beta1(n)
	case head.Kind == "NodePool" && head.APIVersion == V1:
		p, problems = decodeV1(n)
	default:
		return NodePool{}, fieldErrors(object, []strictjson.Problem{{Path: "apiVersion", Detail: unsupported(head.APIVersion, head.Kind)}})
	}
	p.Disruption.Budgets = slices.DeleteFunc(p.Disruption.Budgets, Budget.isNever)
	if n.Get("spec") == nil {
		problems = append(problems, strictjson.Problem{Path: "spec", Detail: "the object has no spec"})
	}
	if len(problems) > 0 {
		return NodePool{}, fieldErrors(object, problems)
	}
	return p, nil
}

func unsupported(version, kind string) string {
	switch kind {
	case "Provisioner":
		return fmt.Sprintf("%q has no Provisioner (did you mean %q?)", version, V1Alpha5)
	case "NodePool":
		return fmt.Sprintf("%q has no NodePool (did you mean %q or %q?)", version, V1, V1Beta1)
	}
	return fmt.Sprintf("%q %q is neither a Provisioner of %s nor a NodePool of %s or %s", version, kind, V1Alpha5, V1Beta1, V1)
}

// fieldErrors joins problems of one object into an error, or returns nil if there are none.
func fieldErrors(object string, problems []strictjson.Problem) error {
	return nodespec.Join(problems, func(path, detail string) error { return &FieldError{Object: object, Path: path, Detail: detail} })
}

// The wire form of the parts that several versions share.
type (
	wireHead struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Metadata   metav1.ObjectMeta `json:"metadata"`
		Status     json.RawMessage   `json:"status"`
	}
	wireTemplateMeta struct {
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	}
	wireNodes struct {
		Taints        []corev1.Taint         `json:"taints"`
		StartupTaints []corev1.Taint         `json:"startupTaints"`
		Requirements  []nodespec.Requirement `json:"requirements"`
	}
	wireBudget struct {
		Reasons  []string `json:"reasons"`
		Nodes    *string  `json:"nodes"`
		Schedule *string  `json:"schedule"`
		Duration *string  `json:"duration"`
	}
)

// node sets the fields for nodes in p, and checks the requirements. spec is the path of n.
func (p *NodePool) node(r *nodespec.Report, spec string, m wireTemplateMeta, n wireNodes) {
	p.Labels, p.Annotations, p.Taints, p.StartupTaints = m.Labels, m.Annotations, n.Taints, n.StartupTaints
	p.Requirements, p.MinValues = r.Requirements(spec+".requirements", n.Requirements, p.fields().rules)
	r.Consistent(p.fields().metadata+".labels", p.Labels, p.Requirements, p.fields().rules)
}

// meta sets the pool object's own metadata, its weight and its limits. A list of limits without
// entries means no limits.
func (p *NodePool) meta(r *nodespec.Report, w wireHead, weight *int32, limits corev1.ResourceList) {
	r.Name("metadata.name", w.Metadata.Name)
	p.APIVersion, p.Kind, p.Name, p.Metadata = w.APIVersion, w.Kind, w.Metadata.Name, w.Metadata
	p.Metadata.Namespace = "" // an API server clears it
	if len(limits) > 0 {
		p.Limits = limits
	}
	if weight == nil {
		return
	}
	if p.Weight = *weight; p.Weight == 0 {
		p.weight(r) // 0 is no weight only if the manifest has none
	}
}

// classRef sets the reference to the node class, and checks which fields the version has for it.
func (p *NodePool) classRef(r *nodespec.Report, ref *nodespec.ClassRef) {
	if ref == nil {
		return
	}
	path, group := p.fields().class, ref.Group
	if p.APIVersion == V1 {
		if ref.APIVersion != "" {
			r.Add(path+".apiVersion", "unknown field \"apiVersion\": since karpenter.sh/v1 it is \"group\", without the version")
		}
	} else {
		if ref.Group != "" {
			r.Add(path+".group", "unknown field \"group\": before karpenter.sh/v1 it is \"apiVersion\", with the version")
		}
		group, _, _ = strings.Cut(ref.APIVersion, "/")
	}
	if p.NodeClass = (NodeClassRef{Group: group, Kind: ref.Kind, Name: ref.Name}); p.NodeClass.IsZero() {
		p.class(r) // without a reference there is nothing to check
	}
}
