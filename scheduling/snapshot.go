// Package scheduling plans pending pods onto existing nodes and nodes to buy, and explains why the others have no place.
//
// [Compile] reads a [Snapshot] once. Pods become classes (equal in all that bears on placement), and instance types become shapes (a
// type as a pool offers it, less the daemons there). [Problem.Solve] then repeats rounds with a [Packer]: it assigns classes to domains,
// the packer says what fits, and it assigns again with that knowledge. The [Result] has the bindings in an order that kube-scheduler
// accepts, the nodes to buy, and the reasons.
//
// # What is decided here, and what by the packer
//
// Scheduling decides domains, the packer decides bins. A constraint on a domain (spread, affinity and anti-affinity over zones, capacity
// types or any label; volumes) becomes an assignment of pods to combinations of label values. A constraint within one node (host ports,
// anti-affinity and spread by hostname, attach limits) becomes tags and limits of items. Pods that must share a node become one bundle.
// Taints become a pseudo-label, whose values pods accept or not.
//
// # What a plan promises
//
// Of two plans the better has more pods of the highest priority in which they differ, then larger requests, then lower cost, then fewer
// preferences given up. A finished plan is bound once more, pod by pod in its own order on its concrete nodes, by code that shares no
// reasoning with the planner. Pods that kube-scheduler would refuse are unplaced, with that reason.
//
// The work grows with classes, domains and offerings; only the last step grows with pods. The same snapshot gives the same result,
// whatever the order of its lists.
package scheduling

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/nodefeature"
	"github.com/joinery-sdk/joinery/scheduling/internal/taints"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Snapshot is everything that bears on where pods can go, at one moment. It is plain data and is only read; pods that
// share slices or maps of their specs (replicas made from one template) are recognised as equal without being compared.
// The zero value is an empty cluster.
type Snapshot struct {
	// Pods are all pods, in any order: those with a node are running there, the others are pending.
	//
	// The annotation joinery-sdk.dev/ratio divides pods over the values of a node label by fixed shares, such as
	// "karpenter.sh/capacity-type: on-demand=2, spot=3". All pods of a namespace with the same text are divided together, running pods
	// included. A name and a semicolon in front make another text: "web; karpenter.sh/capacity-type: on-demand=1, spot=1". The ratio is
	// a hard constraint of the plan; kube-scheduler does not know it. No other annotation bears on placement.
	Pods []*corev1.Pod
	// Staying says of pods on nodes that are being removed why a drain does not evict them, such as an annotation do-not-disrupt or a
	// PodDisruptionBudget that allows no disruption, by "namespace/name". They stay until the node is gone, and nothing is planned for them.
	Staying map[string]string
	// Nodes are the existing nodes.
	Nodes []*corev1.Node
	// NodeClaims are the nodes that were bought, whether they are among Nodes yet or not.
	NodeClaims []NodeClaim
	// Pools are what may be bought.
	Pools []Pool
	// DaemonSets run on every node that their pods tolerate and select.
	DaemonSets []*appsv1.DaemonSet
	// Namespaces are needed for their labels, where affinity selects by them.
	Namespaces []*corev1.Namespace
	// PersistentVolumes, bound or not, PersistentVolumeClaims and StorageClasses decide where pods with volumes can go, and CSINodes
	// how many volumes a node takes. A pod whose claim is not among them is refused.
	PersistentVolumes      []*corev1.PersistentVolume
	PersistentVolumeClaims []*corev1.PersistentVolumeClaim
	StorageClasses         []*storagev1.StorageClass
	CSINodes               []*storagev1.CSINode
	// VolumeAttachments are volumes that nodes have, in use or not: they count against the limits of CSINodes. CSIStorageCapacities say where
	// volumes can still be made, if their driver is among CSIDrivers and publishes them.
	VolumeAttachments    []*storagev1.VolumeAttachment
	CSIDrivers           []*storagev1.CSIDriver
	CSIStorageCapacities []*storagev1.CSIStorageCapacity
	// PriorityClasses, RuntimeClasses and LimitRanges are what an API server's admission reads. Pods are planned as it would store them.
	PriorityClasses []*schedulingv1.PriorityClass
	RuntimeClasses  []*nodev1.RuntimeClass
	LimitRanges     []*corev1.LimitRange
}

// Pool is a node pool with all instance types of its cloud. Types that its requirements exclude are used in explanations. Pools may
// share one slice of types.
type Pool struct {
	nodepool.NodePool
	Types []instancetypes.InstanceType
}

// NodeClaim is a node that was bought, and what was promised of it. Until the node is initialized, pods are planned by the promise.
// Afterwards only the node's own figures count. The claim counts against the limits of its pool until it is deleted.
//
// It has what bears on planning and no more; short functions make it of a provider's claim or of a manifest. The zero value is invalid:
// it has no name.
type NodeClaim struct {
	// Name identifies the claim, and names its node in a plan until the node is there.
	Name string
	// NodeName and ProviderID identify the claim's node, by its name or its spec.providerID. Where both are empty, the node has the
	// claim's name.
	NodeName, ProviderID string
	// Labels are labels that the node will have, [nodepool.LabelKey] included.
	Labels map[string]string
	// Taints keep pods away. StartupTaints will be removed and keep no pods away; those of the claim's pool are known without.
	Taints, StartupTaints []corev1.Taint
	// Capacity counts against the limits of the pool, Allocatable is for pods. The node's own figures replace them one by one. A claim
	// without any holds no pods.
	Capacity, Allocatable corev1.ResourceList
	// Initialized says that the node was ready once, with all resources and without startup taints. The label karpenter.sh/initialized
	// of the node says the same.
	Initialized bool
	// Deleting says that the node is being removed.
	Deleting bool
}

// Node is the node as it will register: ready and empty, under the name that plans use for it. The result is the caller's.
func (c *NodeClaim) Node() *corev1.Node {
	n := readyNode(cmp.Or(c.NodeName, c.Name), c.Labels, slices.Clone(c.Taints), c.Capacity.DeepCopy(), c.Allocatable.DeepCopy())
	n.Spec.ProviderID = c.ProviderID
	return n
}

// Options are the choices of [Compile] that a snapshot does not make. nil means defaults.
type Options struct {
	// IgnorePreferences drops all soft constraints. By default they are tried as hard ones and given up one at a time.
	IgnorePreferences bool
	// PreferencePrice is what a preference (a soft spread, preferred affinity or anti-affinity, a soft taint) may cost: a share of the price of
	// what each pod that has it takes of a node, at the least. A plan gives up preferences that cost more. 0 buys nothing for a preference, and
	// an infinite price has preferences given up only where pods could not be placed with them, as Karpenter does. nil means
	// a tenth.
	PreferencePrice *float64
	// LeaveZones allows plans that buy nothing in a zone, which hard spreads then do not count, as kube-scheduler counts a zone only if a node is
	// there. By default spreads count every zone for sale, as Karpenter has it, and pods that spread over zones are in each of them.
	LeaveZones bool
	// Attempts bounds the search for a plan that places more pods; each attempt costs as much as the first. 0 means 8, or fewer as soon
	// as all rounds together have planned 15,000 pods. 1 ends the search with the first plan, and no cheaper
	// one is looked for.
	Attempts int
	// Constraints are rules of the caller's own, asked for every pod.
	Constraints []Constraint
	// Apart names a pod's workload, or whatever the packer has rules about: pods of different names are of different classes. By default
	// it is nil, and pods that are equal to kube-scheduler are of one class. Only then pods that the packer could not place may be added
	// to the nodes that it buys, if kube-scheduler accepts them there and the pool has no MinValues.
	Apart func(*corev1.Pod) string
	// Together names the set of a pod, and the label of which the nodes of all pods of the set must have one value in common, whatever their
	// manifests say; empty for none. It is asked of pods to place, and of running ones, which decide the value. Nodes without the label take
	// none of the pods. All pods of a set must have one label. nil means no sets. Package whatif does not ask it.
	Together func(*corev1.Pod) (set, label string)
	// Within names the nodes that the caller chose for a pod of several that its rules allow, such as those of one zone; the zero Set for all. It is
	// a choice and no rule: [Result.Relaxed] leaves it out, so a bound holds for every other choice, too. nil chooses nothing.
	Within func(*corev1.Pod) requirements.Set
	// Rank orders pods of one priority: where not all of them can be placed, those of a higher rank go first. nil means that all are equal.
	Rank func(*corev1.Pod) int
	// Aliases are label keys that nodes to buy have beside others, with the same values, because their agents set them. nil means
	// [requirements.AgentAliases]. Existing nodes have the labels that they have.
	Aliases *requirements.Aliases
	// Progress is called after each packed round with the number of rounds so far, the pods that the best of them placed, and all pending
	// pods. It may be nil.
	Progress func(rounds, placed, pods int)
}

// InvalidError is something in a snapshot that has no meaning, such as two nodes of one name, or a pod with a misspelt operator.
type InvalidError struct {
	// What is the kind and name of the object, or list and position where it has no name.
	What string
	// Err says what is wrong with it, and how to correct it.
	Err error
}

// Error is "scheduling: what: what is wrong".
func (e *InvalidError) Error() string { return "scheduling: " + e.What + ": " + e.Err.Error() }

// Unwrap gives the cause.
func (e *InvalidError) Unwrap() error { return e.Err }

// Validate reports everything in the snapshot that has no meaning, an [*InvalidError] each: what [Snapshot.Check] reports, and pods and
// DaemonSets with faults. It is for manifests that may still be corrected; whoever plans a cluster needs only [Compile].
func (s *Snapshot) Validate() error {
	v := validation{}
	v.objects(s)
	for _, p := range s.Pods {
		if p != nil {
			v.pod(object{"pod", p}, "", p, nodeAffinity(&p.Spec))
		}
	}
	for _, d := range s.DaemonSets {
		if d != nil {
			pod := corev1.Pod{ObjectMeta: d.Spec.Template.ObjectMeta, Spec: d.Spec.Template.Spec}
			v.pod(object{"DaemonSet", d}, "spec.template.", &pod, nodeAffinity(&pod.Spec))
		}
	}
	return errors.Join(v.errs...)
}

// Check reports what keeps [Compile] from reading the snapshot, an [*InvalidError] each, such as a nil object or two of one name. A fault
// of a single pod or DaemonSet does not: an API server may have stored it, and whoever may create a pod must not stop everybody's plan.
func (s *Snapshot) Check() error {
	v := validation{}
	v.objects(s)
	return errors.Join(v.errs...)
}

// objects reports what is wrong with the snapshot beside single pods.
func (v *validation) objects(s *Snapshot) {
	listed(v, "pod", "pods", "Pods", s.Pods, nil)
	listed(v, "node", "nodes", "Nodes", s.Nodes, func(n *corev1.Node) {
		v.amounts("node "+n.Name, n.Status.Allocatable)
		v.amounts("node "+n.Name, n.Status.Capacity)
		v.taints("node "+n.Name, n.Spec.Taints)
	})
	v.claims(s)
	listed(v, "DaemonSet", "daemonSets", "DaemonSets", s.DaemonSets, nil)
	for i, n := range s.Namespaces {
		if n == nil {
			v.add(fmt.Sprintf("Namespaces[%d]", i), "is nil; leave it out")
		}
	}
	listed(v, "PersistentVolume", "PersistentVolumes", "PersistentVolumes", s.PersistentVolumes, nil)
	listed(v, "PersistentVolumeClaim", "PersistentVolumeClaims", "PersistentVolumeClaims", s.PersistentVolumeClaims, nil)
	listed(v, "StorageClass", "StorageClasses", "StorageClasses", s.StorageClasses, nil)
	listed(v, "CSINode", "CSINodes", "CSINodes", s.CSINodes, nil)
	listed(v, "VolumeAttachment", "VolumeAttachments", "VolumeAttachments", s.VolumeAttachments, nil)
	listed(v, "CSIDriver", "CSIDrivers", "CSIDrivers", s.CSIDrivers, nil)
	listed(v, "CSIStorageCapacity", "CSIStorageCapacities", "CSIStorageCapacities", s.CSIStorageCapacities, nil)
	listed(v, "PriorityClass", "PriorityClasses", "PriorityClasses", s.PriorityClasses, nil)
	listed(v, "RuntimeClass", "RuntimeClasses", "RuntimeClasses", s.RuntimeClasses, nil)
	listed(v, "LimitRange", "LimitRanges", "LimitRanges", s.LimitRanges, nil)
	pools := namesOf("pool", "pools", len(s.Pools))
	checked := map[*instancetypes.InstanceType]bool{} // pools may share their types
	for i := range s.Pools {
		pool := &s.Pools[i]
		pools.check(v, i, pool.Kind, pool.Name) // while users migrate, a Provisioner may have the name of a NodePool
		v.amounts("limit of pool "+pool.Name, pool.Limits)
		v.taints("pool "+pool.Name, pool.Taints)
		v.count("pool "+pool.Name, "weight", int64(pool.Weight))
		if pool.Replicas != nil {
			v.count("pool "+pool.Name, "replicas", *pool.Replicas)
		}
		for _, key := range slices.Sorted(maps.Keys(pool.MinValues)) {
			v.count("pool "+pool.Name, "minValues of "+key, int64(pool.MinValues[key]))
		}
		if len(pool.Types) > 0 && !checked[&pool.Types[0]] {
			checked[&pool.Types[0]] = true
			v.types(pool)
		}
		for _, u := range pool.unknownKeys() {
			if u.refused {
				v.add("pool "+pool.Name, "%s", u.text)
			}
		}
	}
}

type validation struct{ errs []error }

func (v *validation) add(what, format string, args ...any) {
	v.errs = append(v.errs, &InvalidError{what, fmt.Errorf(format, args...)})
}

// names finds objects without a name, and those that have the name of another.
type names struct {
	kind, list string
	seen       map[[2]string]bool
}

func namesOf(kind, list string, count int) names {
	return names{kind, list, make(map[[2]string]bool, count)}
}

// check looks at a name, which is unique within its scope, such as a namespace; "" is the cluster.
func (n *names) check(v *validation, i int, scope, name string) {
	switch at := [2]string{scope, name}; {
	case name == "":
		v.add(fmt.Sprintf("%s[%d]", n.list, i), "has no name")
	case n.seen[at]:
		v.add(n.kind+" "+strings.TrimPrefix(scope+"/"+name, "/"), "is there more than once; names are unique in a cluster")
	default:
		n.seen[at] = true
	}
}

// listed reports objects of a list that are nil, without a name, or named like another, and calls more, if it is not nil, for those that
// are not nil. field is the name of the list in [Snapshot].
func listed[P interface {
	comparable
	metav1.Object
}](v *validation, kind, list, field string, all []P, more func(P)) {
	names := namesOf(kind, list, len(all))
	var missing P
	for i, x := range all {
		if x == missing {
			v.add(fmt.Sprintf("%s[%d]", field, i), "is nil; leave it out")
			continue
		}
		scope := x.GetNamespace()
		if kind == "pod" {
			scope = cmp.Or(scope, corev1.NamespaceDefault)
		}
		names.check(v, i, scope, x.GetName())
		if more != nil {
			more(x)
		}
	}
}

func (v *validation) taints(what string, list []corev1.Taint) {
	for _, t := range list {
		switch t.Effect {
		case corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule:
		default:
			v.add(what, "taint %s has the effect %q, want NoSchedule, NoExecute or PreferNoSchedule", t.Key, t.Effect)
		}
	}
}

// claims reports claims without a name, and claims of one node.
func (v *validation) claims(s *Snapshot) {
	claims := namesOf("claim", "nodeClaims", len(s.NodeClaims))
	names, ids := map[string]string{}, map[string]string{} // claim by name and provider id of the node
	once := func(of map[string]string, key, claim, what string) {
		switch other, taken := of[key]; {
		case key == "":
		case taken && other != claim:
			v.add("claim "+claim, "has the same %s as claim %s, %s; a node has one claim", what, other, key)
		default:
			of[key] = claim
		}
	}
	for i := range s.NodeClaims {
		c := &s.NodeClaims[i]
		claims.check(v, i, "", c.Name)
		v.amounts("claim "+c.Name, c.Capacity)
		v.amounts("claim "+c.Name, c.Allocatable)
		once(names, cmp.Or(c.NodeName, c.Name), c.Name, "node")
		once(ids, c.ProviderID, c.Name, "provider id")
	}
}

func (v *validation) amounts(what string, list corev1.ResourceList) {
	for _, name := range resources.Names(list) {
		if q := list[name]; q.Sign() < 0 {
			v.add(what, "%s is %s, must not be negative", name, q.String())
		}
	}
}

// count reports a number below zero.
func (v *validation) count(what, field string, n int64) {
	if n < 0 {
		v.add(what, "%s is %d, must not be negative", field, n)
	}
}

func (v *validation) types(pool *Pool) {
	types := namesOf("pool "+pool.Name+": instance type", "pool "+pool.Name+": types", len(pool.Types))
	for i := range pool.Types {
		t := &pool.Types[i]
		types.check(v, i, "", t.Name)
		v.amounts("instance type "+t.Name, t.Capacity)
		for k := range t.Offerings {
			v.count("instance type "+t.Name, fmt.Sprintf("reservation count of offering %d", k), int64(t.Offerings[k].ReservationCount))
		}
	}
}

// Taints of nodes that Karpenter is about to delete.
const (
	taintDisrupted  = "karpenter.sh/disrupted"
	taintDisruption = "karpenter.sh/disruption" // the name before v1
)

// member is a node of the cluster as it is planned with: its own figures and, until it is initialized, those of its claim.
type member struct {
	node                  *corev1.Node // made of the claim where the node has not joined
	claim                 string       // its name, empty for none
	inFlight              bool         // it has not joined
	starting              bool         // it was never ready for pods, or it reboots
	leaving               bool         // it is being removed, and takes no pods
	pool                  string       // its name, empty for none
	labels                map[string]string
	taints                []corev1.Taint // without temporary ones
	capacity, allocatable corev1.ResourceList
}

// members are the nodes of the snapshot with their claims, and the claims whose nodes have not joined.
func (s *Snapshot) members(aliases requirements.Aliases) []member {
	pools := map[string]*Pool{}
	for i := range s.Pools {
		pools[s.Pools[i].Name] = &s.Pools[i]
	}
	byName, byID := map[string]*NodeClaim{}, map[string]*NodeClaim{}
	for i := range s.NodeClaims {
		c := &s.NodeClaims[i]
		byName[cmp.Or(c.NodeName, c.Name)] = c
		if c.ProviderID != "" {
			byID[c.ProviderID] = c
		}
	}
	out := make([]member, 0, len(s.Nodes)+len(s.NodeClaims))
	there, taken := map[*NodeClaim]bool{}, map[string]bool{}
	for _, n := range s.Nodes {
		c := byID[n.Spec.ProviderID]
		if named := byName[n.Name]; c == nil && named != nil && (named.NodeName != "" || named.ProviderID == "" || n.Spec.ProviderID == "") {
			c = named
		}
		there[c], taken[n.Name] = true, true
		out = append(out, memberOf(n, c, pools, aliases))
	}
	for i := range s.NodeClaims {
		c := &s.NodeClaims[i]
		if there[c] {
			continue
		}
		n := c.Node()
		if taken[n.Name] { // by a node of an earlier claim of this name
			n.Name = c.ProviderID
		}
		m := memberOf(n, c, pools, aliases)
		m.inFlight = true
		m.leaving = m.leaving || c.Initialized // its node had joined, and was deleted since
		out = append(out, m)
	}
	return out
}

func memberOf(n *corev1.Node, c *NodeClaim, pools map[string]*Pool, aliases requirements.Aliases) member {
	m := member{node: n, starting: taints.StartingUp(n), leaving: n.DeletionTimestamp != nil, capacity: n.Status.Capacity, allocatable: n.Status.Allocatable}
	if len(m.allocatable) == 0 { // an API server defaults it to capacity, as a whole
		m.allocatable = m.capacity
	}
	m.leaving = m.leaving || slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taintDisrupted || t.Key == taintDisruption })
	all, known := n.Spec.Taints, []corev1.Taint(nil) // known are the startup taints
	m.labels, m.pool = map[string]string{}, poolOf(n.Labels)
	if c != nil {
		m.claim = c.Name
		m.leaving = m.leaving || c.Deleting
		m.starting = !c.Initialized && !taints.Initialized(n)
	}
	m.starting = m.starting || taints.Rebooting(n)
	if m.starting && c != nil {
		if m.pool == "" {
			m.pool = poolOf(c.Labels)
		}
		m.labels = registered(pools[m.pool], aliases, requirements.FromLabels(c.Labels)).Labels()
		m.capacity, m.allocatable = promisedOf(m.capacity, c.Capacity), promisedOf(m.allocatable, c.Allocatable)
		if !taints.Registered(n) {
			all = slices.Concat(all, c.Taints)
		}
		known = c.StartupTaints
	}
	maps.Copy(m.labels, n.Labels)
	if n.Spec.Unschedulable { // a cordon counts as the taint that the node lifecycle controller adds for it
		all = append(slices.Clip(all), corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	if m.starting {
		if p := pools[m.pool]; p != nil {
			known = slices.Concat(known, p.StartupTaints)
		}
		all = slices.DeleteFunc(slices.Clone(all), func(t corev1.Taint) bool {
			return taints.Ephemeral(t) || slices.ContainsFunc(known, func(s corev1.Taint) bool { return s.MatchTaint(&t) })
		})
		if m.labels[corev1.LabelHostname] == "" { // its kubelet will set it
			m.labels[corev1.LabelHostname] = n.Name
		}
	}
	m.labels[requirements.NodeNameKey] = n.Name
	maps.Copy(m.labels, nodefeature.Declared(n))
	for i := range all {
		if !slices.ContainsFunc(m.taints, func(t corev1.Taint) bool { return t.MatchTaint(&all[i]) }) {
			m.taints = append(m.taints, all[i])
		}
	}
	return m
}

// poolOf is the name of the pool in the labels of a node, under the key of today or that of Provisioners.
func poolOf(labels map[string]string) string {
	return cmp.Or(labels[nodepool.LabelKey], labels[nodepool.ProvisionerLabelKey])
}

// promisedOf is the resources that a node shows, completed with promised ones that it lacks or has none of.
func promisedOf(shown, promised corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	maps.Copy(out, shown)
	for name, q := range promised {
		if own, ok := out[name]; !ok || own.IsZero() {
			out[name] = q
		}
	}
	return out
}
