package nodepool

import (
	"encoding/json"
	"fmt"
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

// node checks the fields for nodes and sets them in p. metadata and spec are the paths of m and n.
func (p *NodePool) node(r *nodespec.Report, metadata, spec string, m wireTemplateMeta, n wireNodes, rules nodespec.Rules) {
	rules.Pool = true
	p.Labels, p.Annotations, p.Taints, p.StartupTaints = m.Labels, m.Annotations, n.Taints, n.StartupTaints
	p.Requirements, p.MinValues = r.Requirements(spec+".requirements", n.Requirements, rules)
	r.Labels(metadata+".labels", p.Labels, p.Requirements, rules)
	r.Annotations(metadata+".annotations", p.Annotations)
	r.Taints(spec, p.Taints, p.StartupTaints)
}

// meta checks the pool object's own metadata and weight.
func (p *NodePool) meta(r *nodespec.Report, w wireHead, weight *int32) {
	r.Name("metadata.name", w.Metadata.Name)
	nodespec.Range(r, "spec.weight", weight, 1, 100)
	p.APIVersion, p.Kind, p.Name, p.Metadata = w.APIVersion, w.Kind, w.Metadata.Name, w.Metadata
	p.Metadata.Namespace = "" // an API server clears it
	if weight != nil {
		p.Weight = *weight
	}
}

// limits checks the limits; a list without entries means no limits.
func (p *NodePool) limits(r *nodespec.Report, path string, list corev1.ResourceList) {
	r.Quantities(path, list)
	if q, ok := list["nodes"]; ok && q.MilliValue()%1000 != 0 {
		r.Add(path+".nodes", "%s: want a whole number of nodes", q.String())
	}
	if len(list) > 0 {
		p.Limits = list
	}
}

func (p *NodePool) classRef(r *nodespec.Report, path string, ref *nodespec.ClassRef, withGroup bool) {
	if ref == nil {
		return
	}
	if ref.Name == "" {
		r.Add(path+".name", "the reference needs a name")
	}
	group := ref.Group
	if withGroup {
		for _, field := range []struct{ name, value string }{{"group", group}, {"kind", ref.Kind}} {
			if field.value == "" {
				r.Add(path+"."+field.name, "the reference needs a %s since karpenter.sh/v1", field.name)
			}
		}
		if strings.Contains(group, "/") {
			name, _, _ := strings.Cut(group, "/")
			r.Add(path+".group", "%q: a group has no version (did you mean %q?)", group, name)
		}
		if ref.APIVersion != "" {
			r.Add(path+".apiVersion", "unknown field \"apiVersion\": since karpenter.sh/v1 it is \"group\", without the version")
		}
	} else {
		if ref.Group != "" {
			r.Add(path+".group", "unknown field \"group\": before karpenter.sh/v1 it is \"apiVersion\", with the version")
		}
		group, _, _ = strings.Cut(ref.APIVersion, "/")
	}
	p.NodeClass = NodeClassRef{Group: group, Kind: ref.Kind, Name: ref.Name}
}
