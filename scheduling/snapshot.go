package scheduling

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/capacityquota"
	"github.com/joinery-sdk/joinery/scheduling/internal/nodefeature"
	"github.com/joinery-sdk/joinery/scheduling/internal/podfault"
	"github.com/joinery-sdk/joinery/scheduling/internal/poolkeys"
	"github.com/joinery-sdk/joinery/scheduling/internal/taints"
	"github.com/joinery-sdk/joinery/scheduling/internal/validation"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Snapshot is everything that affects where pods can go, at one moment. It is plain data and is
// only read. The zero value is an empty cluster. It saves time, and changes no result, if pods of
// one template share the memory of their specs.
type Snapshot struct {
	// Pods are all pods, in any order. Those with a node run there; the others are pending.
	//
	// The annotation joinery-sdk.dev/ratio divides pods over the values of a node label by fixed
	// shares, for example "karpenter.sh/capacity-type: on-demand=2, spot=3". All pods of a
	// namespace with the same text are divided together, running pods included. To divide some pods
	// separately, put a name and a semicolon in front of the text: "web;
	// karpenter.sh/capacity-type: on-demand=1, spot=1". The ratio is a hard constraint of the plan;
	// kube-scheduler does not know it. No other annotation affects placement.
	Pods []*corev1.Pod
	// Staying has the pods of leaving nodes that no drain evicts. A node is leaving if it or its
	// claim is being deleted, or if it has Karpenter's taint for disruption. The key is
	// "namespace/name", and the value is the reason, for example a do-not-disrupt annotation, or a
	// PodDisruptionBudget that allows no disruption. Such a pod stays until its node is gone, and
	// nothing is planned for it.
	Staying map[string]string
	// Nodes are the existing nodes.
	Nodes []*corev1.Node
	// NodeClaims are the nodes that were bought, whether or not they are already among Nodes.
	NodeClaims []NodeClaim
	// Pools are what may be bought.
	Pools []Pool
	// Quotas are CapacityQuotas: limits on the sum of all nodes that a selector chooses, over all
	// pools. A node is bought only if it exceeds no limit of its pool and no quota that its labels
	// match.
	Quotas []capacityquota.Quota
	// DaemonSets run on every node that their pods tolerate and select.
	DaemonSets []*appsv1.DaemonSet
	// Namespaces are needed for their labels, where affinity selects by them. Pods of a namespace
	// that is being deleted are not planned: they are deleted too, and an API server creates none
	// there.
	Namespaces []*corev1.Namespace
	// PersistentVolumes (bound or not), PersistentVolumeClaims and StorageClasses decide where pods
	// with volumes can go. CSINodes say how many volumes a node takes. A pod whose claim is missing
	// is refused.
	PersistentVolumes      []*corev1.PersistentVolume
	PersistentVolumeClaims []*corev1.PersistentVolumeClaim
	StorageClasses         []*storagev1.StorageClass
	CSINodes               []*storagev1.CSINode
	// VolumeAttachments are volumes that nodes have, in use or not; they count against the limits
	// of CSINodes. CSIStorageCapacities say where volumes can still be made, if their driver is
	// among CSIDrivers and publishes them.
	VolumeAttachments    []*storagev1.VolumeAttachment
	CSIDrivers           []*storagev1.CSIDriver
	CSIStorageCapacities []*storagev1.CSIStorageCapacity
	// PriorityClasses, RuntimeClasses and LimitRanges are what the admission of an API server
	// reads. Pods are planned as it would store them.
	PriorityClasses []*schedulingv1.PriorityClass
	RuntimeClasses  []*nodev1.RuntimeClass
	LimitRanges     []*corev1.LimitRange
}

// Pool is a node pool with all instance types of its cloud. Types that its requirements exclude are
// used in explanations. Pools may share one slice of types.
type Pool struct {
	nodepool.NodePool
	Types []instancetypes.InstanceType
	// MaxNodes limits the nodes of the pool, including existing ones, beside the limits of its
	// manifest; 0 means any number. Reasons say that MaxNodesBy sets it.
	MaxNodes   int64
	MaxNodesBy string
}

// NodeClaim is a node that was bought, with what was promised of it. Pods are planned by the
// promise until the node is initialized; afterwards only the node's own figures count. The claim
// counts against the limits of its pool until it is deleted.
//
// It has only what affects planning. Callers fill it from a provider's claim or from a manifest.
// The zero value is invalid, because it has no name.
type NodeClaim struct {
	// Name identifies the claim. Until the node has joined, plans name it by NodeName, or by Name
	// if NodeName is empty. If another node has that name already, plans use ProviderID.
	Name string
	// NodeName and ProviderID identify the claim's node, by its name or its spec.providerID. If
	// both are empty, the node has the claim's name.
	NodeName, ProviderID string
	// Labels are labels that the node will have, including [nodepool.LabelKey].
	Labels map[string]string
	// Taints keep pods away. StartupTaints will be removed and keep no pods away; those of the
	// claim's pool need not be repeated.
	Taints, StartupTaints []corev1.Taint
	// Capacity counts against the limits of the pool, and Allocatable is for pods. If the node
	// itself reports a resource, its figure replaces that of the claim. A claim without any figures
	// holds no pods.
	Capacity, Allocatable corev1.ResourceList
	// Initialized says that the node was once ready, with all resources and without startup taints.
	// The node's label karpenter.sh/initialized says the same.
	Initialized bool
	// Deleting says that the node is being removed.
	Deleting bool
}

// Node returns the node as it will register: ready and empty, under the name that plans use for it.
// The caller owns the result.
func (c *NodeClaim) Node() *corev1.Node {
	n := readyNode(cmp.Or(c.NodeName, c.Name), c.Labels, slices.Clone(c.Taints), c.Capacity.DeepCopy(), c.Allocatable.DeepCopy())
	n.Spec.ProviderID = c.ProviderID
	return n
}

// readyNode returns a node with these figures. If labels have no hostname, the node's name is used.
func readyNode(name string, labels map[string]string, taints []corev1.Taint, capacity, allocatable corev1.ResourceList) *corev1.Node {
	all := map[string]string{corev1.LabelHostname: name}
	maps.Copy(all, labels)
	all[corev1.LabelHostname] = cmp.Or(all[corev1.LabelHostname], name)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: all},
		Spec:       corev1.NodeSpec{Taints: taints},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: allocatable,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

// Options are the choices of [Compile] that are not part of a snapshot. nil means defaults.
type Options struct {
	// IgnorePreferences drops all soft constraints. By default they are tried as hard constraints
	// and given up one at a time.
	IgnorePreferences bool
	// PreferencePrice is how much a plan may pay to keep one preference of one pod, as a share of
	// that pod's [Problem.PodPrice]. Preferences are soft spreads, preferred affinity and
	// anti-affinity, and soft taints. A plan gives up those that cost more. 0 pays nothing. With an
	// infinite price, as in Karpenter, preferences are given up only if pods could not be placed
	// with them. nil means a tenth. A negative price or NaN is an error of [Compile].
	PreferencePrice *float64
	// Cost is what a node to buy counts as, in dollars an hour, when plans are compared, for example
	// its price plus a licence. nil means the price. Negative, infinite or NaN is an error.
	Cost func(labels requirements.Set, pricePerHour float64) float64
	// LeaveZones allows plans that buy nothing in a zone. Hard spreads then do not count that zone,
	// since kube-scheduler counts a zone only if a node is there. By default, as in Karpenter,
	// spreads count every zone for sale, so pods that spread over zones are in each of them. Spreads
	// by other labels, such as hostname or capacity type, count what is for sale in either case.
	LeaveZones bool
	// Attempts limits the search for a plan that places more pods. Each attempt costs as much as
	// the first. 0 means 8, or fewer in large clusters: after the second attempt, none begins once
	// rounds x pending pods has reached 15,000. 1 ends the search with the first plan, without
	// looking for a cheaper one. A negative number is an error of [Compile].
	Attempts int
	// Constraints are rules of the caller, asked for every pod. nil ones are skipped.
	Constraints []Constraint
	// Apart returns a text for a pod, such as its workload or whatever the packer has rules about.
	// Pods with different texts are in different classes. New nodes then stay as the packer made
	// them. If Apart is nil, pods that kube-scheduler cannot tell apart are in one class. The plan
	// may then give up new nodes, see [Outcome.AsPacked]. It may also add an unplaced pod to a new
	// node if kube-scheduler accepts it there and the pool has no MinValues.
	Apart func(*corev1.Pod) string
	// Together returns the name of a pod's set, empty for none, and a label, which is the same for
	// all pods of a set. All pods of a set must be on nodes with the same value of it, whatever
	// their manifests say. Running pods of the set decide the value. Nodes without the label take
	// none of them. nil means no sets. Package whatif has an option of the same name and ignores
	// this one.
	Together func(*corev1.Pod) (set, label string)
	// Within narrows a pod to nodes that the caller chose, such as those of one zone; the zero Set
	// means all, and a nil Within restricts no pod. It is a choice and not a rule: [Result.Relaxed]
	// ignores it, so a bound computed from that holds whatever nodes the caller chooses here.
	Within func(*corev1.Pod) requirements.Set
	// Rank orders pods of equal priority: if not all can be placed, those of higher rank go first.
	// nil means equal ranks.
	Rank func(*corev1.Pod) int
	// Aliases are label keys that agents will add to bought nodes, each with the value of another
	// key. nil means [requirements.AgentAliases]. Existing nodes have only their own labels.
	Aliases *requirements.Aliases
	// Progress is called after each packed round. It gets the number of rounds so far, how many
	// pods the best of them placed, and the number of pending pods. It may be nil.
	Progress func(rounds, placed, pods int)
}

// defaultPreferencePrice is the default of [Options.PreferencePrice].
const defaultPreferencePrice = 0.1

// check says what cannot be meant.
func (o *Options) check() error {
	if o != nil && o.PreferencePrice != nil && !(*o.PreferencePrice >= 0) {
		return fmt.Errorf("scheduling: Options.PreferencePrice is %v: want a share of a pod's price, 0 or more, or nil for %v", *o.PreferencePrice, defaultPreferencePrice)
	}
	if o != nil && o.Attempts < 0 {
		return fmt.Errorf("scheduling: Options.Attempts is %d, must not be negative; 0 means %d, or fewer in large clusters", o.Attempts, defaultAttempts)
	}
	return nil
}

// PreferenceShare returns PreferencePrice or its default, and never less than 0. o must not be nil.
func (o *Options) PreferenceShare() float64 {
	if o.PreferencePrice == nil {
		return defaultPreferencePrice
	}
	return max(0, *o.PreferencePrice)
}

// InvalidError says that a part of a snapshot has no meaning, such as a second node of the same
// name, or a pod with a misspelt operator.
type InvalidError struct {
	// What names the object: its kind and name, or its list and position if it has no name.
	What string
	// Err says what is wrong with it, and how to correct it.
	Err error
}

// Error returns "scheduling: what: what is wrong".
func (e *InvalidError) Error() string { return "scheduling: " + e.What + ": " + e.Err.Error() }

// Unwrap returns Err.
func (e *InvalidError) Unwrap() error { return e.Err }

// Validate returns one [*InvalidError] for each part of the snapshot that has no meaning: what
// [Snapshot.Check] reports, and faults of pods and DaemonSets. It is for manifests that can still
// be corrected; to plan a cluster, [Compile] is enough.
func (s *Snapshot) Validate() error {
	v := checks{}
	v.objects(s)
	readable := len(v.Faults) == 0
	for _, p := range s.Pods {
		if p != nil {
			v.pod("pod", p, p, "")
		}
	}
	for _, d := range s.DaemonSets {
		if d != nil {
			v.pod("DaemonSet", d, &corev1.Pod{ObjectMeta: d.Spec.Template.ObjectMeta, Spec: d.Spec.Template.Spec}, "spec.template.")
		}
	}
	if readable && len(v.Faults) == 0 { // what cannot be read is seldom valid either, and is reported once
		v.refused(s)
	}
	return v.err()
}

// Check returns one [*InvalidError] for each fault that keeps [Compile] from reading the snapshot,
// such as a nil object or two objects of one name. It does not report faults of single pods and
// DaemonSets. An API server may have stored them, and one bad pod must not stop all planning.
func (s *Snapshot) Check() error {
	v := checks{}
	v.objects(s)
	return v.err()
}

// objects reports what is wrong with the snapshot, except for single pods.
func (v *checks) objects(s *Snapshot) {
	validation.List(&v.Faults, "pod", "pods", "Pods", s.Pods, nil)
	validation.List(&v.Faults, "node", "nodes", "Nodes", s.Nodes, func(n *corev1.Node) {
		v.Amounts("node "+n.Name, n.Status.Allocatable)
		v.Amounts("node "+n.Name, n.Status.Capacity)
		v.Taints("node "+n.Name, n.Spec.Taints)
	})
	v.claims(s)
	validation.List(&v.Faults, "DaemonSet", "daemonSets", "DaemonSets", s.DaemonSets, nil)
	for i, n := range s.Namespaces {
		if n == nil {
			v.Add(fmt.Sprintf("Namespaces[%d]", i), "is nil; leave it out")
		}
	}
	validation.List(&v.Faults, "PersistentVolume", "PersistentVolumes", "PersistentVolumes", s.PersistentVolumes, nil)
	validation.List(&v.Faults, "PersistentVolumeClaim", "PersistentVolumeClaims", "PersistentVolumeClaims", s.PersistentVolumeClaims, nil)
	validation.List(&v.Faults, "StorageClass", "StorageClasses", "StorageClasses", s.StorageClasses, nil)
	validation.List(&v.Faults, "CSINode", "CSINodes", "CSINodes", s.CSINodes, nil)
	validation.List(&v.Faults, "VolumeAttachment", "VolumeAttachments", "VolumeAttachments", s.VolumeAttachments, nil)
	validation.List(&v.Faults, "CSIDriver", "CSIDrivers", "CSIDrivers", s.CSIDrivers, nil)
	validation.List(&v.Faults, "CSIStorageCapacity", "CSIStorageCapacities", "CSIStorageCapacities", s.CSIStorageCapacities, nil)
	validation.List(&v.Faults, "PriorityClass", "PriorityClasses", "PriorityClasses", s.PriorityClasses, nil)
	validation.List(&v.Faults, "RuntimeClass", "RuntimeClasses", "RuntimeClasses", s.RuntimeClasses, nil)
	validation.List(&v.Faults, "LimitRange", "LimitRanges", "LimitRanges", s.LimitRanges, nil)
	v.quotas(s)
	pools := validation.NamesOf("pool", "pools", len(s.Pools))
	checked := map[*instancetypes.InstanceType]bool{} // pools may share their types
	for i := range s.Pools {
		pool := &s.Pools[i]
		pools.Check(&v.Faults, i, pool.Kind, pool.Name) // a Provisioner may share a NodePool's name during a migration
		v.Pool(&pool.NodePool)
		if len(pool.Types) > 0 && !checked[&pool.Types[0]] {
			checked[&pool.Types[0]] = true
			v.types(pool)
		}
		v.ClassLabel(&pool.NodePool, classKey(pool.NodeClass), pool.Types)
		for _, u := range poolkeys.Unknown(&pool.NodePool, pool.Types) {
			if u.Refused {
				v.Add("pool "+pool.Name, "%s", u.Text)
			}
		}
	}
}

// checks are the faults of a snapshot.
type checks struct{ validation.Faults }

// err returns the faults as errors.
func (v *checks) err() error {
	var errs []error
	for _, f := range v.Faults {
		errs = append(errs, &InvalidError{f.What, f.Err})
	}
	return errors.Join(errs...)
}

// claims reports claims without a name, and claims that share a node.
func (v *checks) claims(s *Snapshot) {
	claims := validation.NamesOf("claim", "nodeClaims", len(s.NodeClaims))
	names, ids := map[string]string{}, map[string]string{} // claim by name and provider id of the node
	once := func(of map[string]string, key, claim, what string) {
		switch other, taken := of[key]; {
		case key == "":
		case taken && other != claim:
			v.Add("claim "+claim, "has the same %s as claim %s, %s; a node has one claim", what, other, key)
		default:
			of[key] = claim
		}
	}
	for i := range s.NodeClaims {
		c := &s.NodeClaims[i]
		claims.Check(&v.Faults, i, "", c.Name)
		v.Amounts("claim "+c.Name, c.Capacity)
		v.Amounts("claim "+c.Name, c.Allocatable)
		once(names, cmp.Or(c.NodeName, c.Name), c.Name, "node")
		once(ids, c.ProviderID, c.Name, "provider id")
	}
}

func (v *checks) types(pool *Pool) {
	types := validation.NamesOf("pool "+pool.Name+": instance type", "pool "+pool.Name+": types", len(pool.Types))
	for i := range pool.Types {
		t := &pool.Types[i]
		types.Check(&v.Faults, i, "", t.Name)
		v.Amounts("instance type "+t.Name, t.Capacity)
		for k := range t.Offerings {
			v.Count("instance type "+t.Name, fmt.Sprintf("reservation count of offering %d", k), int64(t.Offerings[k].ReservationCount))
		}
	}
}

// quotas reports what is wrong with the CapacityQuotas.
func (v *checks) quotas(s *Snapshot) {
	names := validation.NamesOf("CapacityQuota", "Quotas", len(s.Quotas))
	for i := range s.Quotas {
		q := &s.Quotas[i]
		names.Check(&v.Faults, i, "", q.Name)
		v.Amounts("CapacityQuota "+q.Name, q.Limits)
		v.Spelling("CapacityQuota "+q.Name, q.Limits, capacityquota.Misspelt)
		if _, err := metav1.LabelSelectorAsSelector(q.Selector); err != nil {
			v.Add("CapacityQuota "+q.Name, "selector: %w", err)
		}
	}
}

// pod reports what planning cannot read in the pod of an object. at is its path there.
func (v *checks) pod(kind string, o metav1.Object, p *corev1.Pod, at string) {
	for _, err := range podfault.Of(p, at, nodeAffinity(&p.Spec)) {
		v.Add(fmt.Sprintf("%s %s/%s", kind, cmp.Or(o.GetNamespace(), corev1.NamespaceDefault), o.GetName()), "%w", err)
	}
}

// Budgets returns what the CapacityQuotas of the snapshot still allow, sorted by the name of the
// quota, then of the resource. Existing nodes, claims whose nodes have not joined, and nodes that
// are being removed all count until they are gone. It costs O(nodes x quotas).
func (s *Snapshot) Budgets() []capacityquota.Budget {
	return budgetsOf(capacityquota.Compile(s.Quotas), s.members(requirements.AgentAliases()))
}

// Taints of nodes that Karpenter is about to delete.
const (
	taintDisrupted  = "karpenter.sh/disrupted"
	taintDisruption = "karpenter.sh/disruption" // the name before v1
)

// member is a node as it is planned with: by its own figures and, until it is initialized, its
// claim's.
type member struct {
	node                  *corev1.Node // made from the claim if the node has not joined
	claim                 string       // its name, empty for none
	inFlight              bool         // it has not joined
	starting              bool         // it was never ready for pods, or it reboots
	leaving               bool         // it is being removed, and takes no pods
	pool                  string       // its name, empty for none
	labels                map[string]string
	taints                []corev1.Taint // without temporary ones
	capacity, allocatable corev1.ResourceList
}

// members are the nodes of the snapshot with their claims, and the claims whose nodes have not
// joined.
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
		m.leaving = m.leaving || c.Initialized // its node had joined, and has been deleted since
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
	if n.Spec.Unschedulable { // a cordon counts as its taint, which a controller adds
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
