package nodepool

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/nodepool/internal/nodespec"
)

// The label that names the pool of a node. Pods may select by either key. New nodes carry both, see
// [NodePool.PoolLabels]; older ones may have only one.
const (
	// LabelKey is the key since karpenter.sh/v1beta1.
	LabelKey = "karpenter.sh/nodepool"
	// ProvisionerLabelKey is the key of karpenter.sh/v1alpha5.
	ProvisionerLabelKey = "karpenter.sh/provisioner-name"
)

// The API versions that [Decode] reads.
const (
	V1Alpha5 = "karpenter.sh/v1alpha5"
	V1Beta1  = "karpenter.sh/v1beta1"
	V1       = "karpenter.sh/v1"
)

// NodePool is one pool of nodes that may be bought, whatever API version it was written in.
//
// It must not be modified, since copies share their maps, slices and pointers. A [Default] replaces
// fields by new values. The zero value is a pool without a name that allows any node, never removes
// one, and has no limits.
type NodePool struct {
	// Name identifies the pool; it is the value of the pool label on its nodes.
	Name string
	// APIVersion is the version of the manifest: [V1Alpha5], [V1Beta1] or [V1]. Kind is
	// "Provisioner" or "NodePool".
	APIVersion, Kind string
	// Metadata is the metadata of the pool object itself, as read. Labels and annotations of its
	// nodes are not in it.
	Metadata metav1.ObjectMeta

	// Weight orders pools: a node for a pod is bought from the heaviest pool that can hold the pod.
	// But a pod may take free room on nodes of lighter pools: on existing ones, and on those that
	// the same plan buys for other pods. Weight is 1 to 100 if the manifest states it, and
	// otherwise 0, the lightest.
	Weight int32
	// Labels and Annotations are put on every node of the pool.
	Labels, Annotations map[string]string
	// Taints stay on the node, so pods must tolerate them. StartupTaints are removed by some daemon
	// once the node is ready, and keep no pods away.
	Taints, StartupTaints []corev1.Taint

	// Requirements are those of spec.requirements with deprecated keys renamed, without labels and
	// without the pool label. [NodePool.NodeRequirements] returns all of them together.
	Requirements requirements.Set
	// MinValues says, for each label key, how many different values the offerings for one node must
	// have at least, 1 to 50; 0 or a missing key means no minimum. Only types that meet all
	// requirements of the pool and of the pods of the node count.
	MinValues map[string]int
	// Limits limit the sum of resources over the pool's nodes, and "nodes" their number; nil means
	// no limits.
	Limits corev1.ResourceList
	// Replicas is the fixed number of nodes of a static pool. It is nil for a pool that grows with
	// its pods.
	Replicas *int64

	// Kubelet configures the kubelet of each node; nil leaves everything to the cloud. In v1 it is
	// part of the node class.
	Kubelet *Kubelet
	// Disruption says when nodes may be given back.
	Disruption Disruption
	// TerminationGracePeriod limits how long a node may take to drain; nil means no limit.
	TerminationGracePeriod *time.Duration

	// NodeClass refers to the cloud's own settings; the zero value means none.
	NodeClass NodeClassRef
	// Provider is the inline alternative to NodeClass of v1alpha5: an object in JSON that only the
	// cloud understands.
	Provider json.RawMessage
}

// NodeClassRef names an object with the cloud's own settings. The zero value refers to nothing.
type NodeClassRef struct {
	// Group is the API group without version, for example "karpenter.k8s.aws". It may be empty in
	// older manifests.
	Group string
	// Kind is empty in older manifests that rely on the cloud's only kind.
	Kind string
	// Name is empty only in the zero value.
	Name string
}

// IsZero reports whether r refers to nothing.
func (r NodeClassRef) IsZero() bool { return r == NodeClassRef{} }

// IsStatic reports whether the pool keeps a fixed number of nodes instead of growing with its pods.
func (p NodePool) IsStatic() bool { return p.Replicas != nil }

// PoolLabels returns the labels that every node of the pool carries: Labels, and the name of the
// pool under both of its keys. The map is new.
func (p NodePool) PoolLabels() map[string]string {
	labels := make(map[string]string, len(p.Labels)+2)
	maps.Copy(labels, p.Labels)
	labels[LabelKey] = p.Name
	labels[ProvisionerLabelKey] = p.Name
	return labels
}

// NodeRequirements returns the set of nodes that the pool may buy: its requirements, its labels and
// the pool label. The pool label is under [LabelKey] only, as requirements.KubernetesAliases
// renames the older key. The set of a decoded pool is never impossible; that of a pool put together
// by hand may be. It costs O(n log n) for n requirements and labels.
func (p NodePool) NodeRequirements() requirements.Set {
	labels := map[string]string{}
	maps.Copy(labels, p.Labels)
	labels[LabelKey] = p.Name
	set, _ := p.Requirements.Intersect(requirements.FromLabels(labels)) // with an error it is impossible
	return set
}

// Validate returns what [Decode] refuses in a manifest, for a pool that was made in Go: unknown
// resources in limits, weights out of range, keys and values that no label can have, unknown
// policies and reasons, budgets that are never active. The error joins one [*FieldError] for each
// fault; its path is that of the manifest. Requirements and labels that contradict each other are no
// fault, since no type meets them and a refusal says so. A pool in Go may stand for a group of nodes
// that another tool made. So its name need only be a label value, its labels may be of Karpenter's
// own domain, and it may require capacity types of your own.
func (p NodePool) Validate() error {
	r, f := nodespec.NewReport(nil), p.fields()
	kind := map[bool]string{true: "Provisioner", false: "NodePool"}[p.APIVersion == V1Alpha5]
	if known := []string{"", V1Alpha5, V1Beta1, V1}; !slices.Contains(known, p.APIVersion) || p.Kind != "" && p.APIVersion != "" && p.Kind != kind {
		r.Add("apiVersion", "%s", unsupported(p.APIVersion, p.Kind))
	}
	for _, msg := range validation.IsValidLabelValue(p.Name) {
		r.Add("metadata.name", "%q: %s", p.Name, msg)
	}
	if p.Name == "" {
		r.Name("metadata.name", p.Name)
	}
	r.Set(f.nodes+".requirements", p.Requirements, p.MinValues, f.rules)
	own := f.rules
	own.Restricted = true
	p.check(r, own)
	for i, b := range p.Disruption.Budgets {
		if b.isNever() {
			r.Add(fmt.Sprintf("%s[%d].duration", budgetsPath, i), needsDuration)
		}
	}
	return fieldErrors(strings.TrimSpace(cmp.Or(p.Kind, kind)+" "+p.Name), r.Problems)
}

// fields are the paths of the fields whose place depends on the API version, and its rules.
type fields struct {
	metadata, nodes, limits, kubelet, class string
	expireAfter, consolidateAfter           string
	rules                                   nodespec.Rules
}

func (p *NodePool) fields() fields {
	const spec = "spec.template.spec"
	f := fields{
		metadata: "spec.template.metadata", nodes: spec, limits: "spec.limits", kubelet: spec + ".kubelet", class: spec + ".nodeClassRef",
		expireAfter: spec + ".expireAfter", consolidateAfter: "spec.disruption.consolidateAfter", rules: nodespec.Rules{Pool: true},
	}
	switch p.APIVersion {
	case V1Alpha5:
		return fields{
			metadata: "spec", nodes: "spec", limits: "spec.limits.resources", kubelet: "spec.kubeletConfiguration", class: "spec.providerRef",
			expireAfter: "spec.ttlSecondsUntilExpired", consolidateAfter: "spec.ttlSecondsAfterEmpty",
			rules: nodespec.Rules{Pool: true, OldDomains: true, NoMinValues: true},
		}
	case V1Beta1:
		f.expireAfter, f.rules.OldDomains = "spec.disruption.expireAfter", true
	}
	return f
}

// check checks all fields except for the name and for the requirements, whose paths in a manifest are
// positions.
func (p *NodePool) check(r *nodespec.Report, labels nodespec.Rules) {
	f := p.fields()
	if p.Weight != 0 {
		p.weight(r)
	}
	r.Labels(f.metadata+".labels", p.Labels, labels)
	r.Annotations(f.metadata+".annotations", p.Annotations)
	r.Taints(f.nodes, p.Taints, p.StartupTaints)
	r.Quantities(f.limits, p.Limits)
	nodes, counted := p.Limits["nodes"]
	if counted && nodes.MilliValue()%1000 != 0 {
		r.Add(f.limits+".nodes", "%s: want a whole number of nodes", nodes.String())
	}
	if p.Replicas != nil {
		const most = 1 << 31
		nodespec.Range(r, "spec.replicas", p.Replicas, 0, most)
		if p.Weight != 0 {
			r.Add("spec.weight", "a pool with replicas has no weight")
		}
		if len(p.Limits) > 1 || len(p.Limits) == 1 && !counted {
			r.Add("spec.limits", "a pool with replicas can limit only nodes")
		}
	}
	if !p.NodeClass.IsZero() {
		p.class(r)
	}
	p.Kubelet.check(r, f.kubelet)
	switch policy := p.Disruption.Policy; policy {
	case "": // removes no node
	case "WhenUnderutilized":
		r.Add("spec.disruption.consolidationPolicy", "%q: since karpenter.sh/v1 it is %s", policy, WhenEmptyOrUnderutilized)
	default:
		r.OneOf("spec.disruption.consolidationPolicy", string(policy), string(WhenEmpty), string(WhenEmptyOrUnderutilized), string(Balanced))
	}
	notNegative := func(path string, d *time.Duration) {
		if d != nil && *d < 0 {
			r.Add(path, "%s: must not be negative", *d)
		}
	}
	notNegative(f.expireAfter, p.Disruption.ExpireAfter)
	notNegative(f.consolidateAfter, p.Disruption.ConsolidateAfter)
	notNegative(f.nodes+".terminationGracePeriod", p.TerminationGracePeriod)
	const most = 50
	if n := len(p.Disruption.Budgets); n > most {
		r.Add(budgetsPath, "%d budgets: at most %d", n, most)
		return
	}
	for i := range p.Disruption.Budgets {
		p.Disruption.Budgets[i].check(r, fmt.Sprintf("%s[%d]", budgetsPath, i), p.APIVersion)
	}
}

func (p *NodePool) weight(r *nodespec.Report) { nodespec.Range(r, "spec.weight", &p.Weight, 1, 100) }

// class checks the reference to the node class.
func (p *NodePool) class(r *nodespec.Report) {
	path, ref := p.fields().class, p.NodeClass
	if ref.Name == "" {
		r.Add(path+".name", "the reference needs a name")
	}
	if p.APIVersion != V1 {
		return
	}
	for _, field := range []struct{ name, value string }{{"group", ref.Group}, {"kind", ref.Kind}} {
		if field.value == "" {
			r.Add(path+"."+field.name, "the reference needs a %s since karpenter.sh/v1", field.name)
		}
	}
	if name, _, versioned := strings.Cut(ref.Group, "/"); versioned {
		r.Add(path+".group", "%q: a group has no version (did you mean %q?)", ref.Group, name)
	}
}

// Compare orders pools by weight, heaviest first, then by name, then by kind. It is meant for
// slices.SortFunc.
func Compare(a, b NodePool) int {
	return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
}
