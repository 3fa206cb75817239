package deprovision_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool/nodeclaim"
)

// sg draws clusters as real ones look.
type sg struct {
	r     *rand.Rand
	open  bool // nothing blocks: for comparing prices with packing from scratch
	plain bool // no constraints between pods
	m     *manifests.Snapshot
	s     scheduling.Snapshot
	types map[string]*instancetypes.InstanceType
	free  map[string]corev1.ResourceList
	node  map[string]*corev1.Node
	on    map[string][]*corev1.Pod
	nodes []*corev1.Node
	pods  []*corev1.Pod
	n     int
	at    time.Time
}

func (g *sg) p(x float64) bool { return g.r.Float64() < x }

func pick[T any](g *sg, list ...T) T { return list[g.r.IntN(len(list))] }

var zones = []string{"us-east-1a", "us-east-1b", "us-east-1c"}

type poolShape struct {
	name, cats, arch, capacity string
	gpu                        bool
	sizes                      []string
	families                   []string
}

func (g *sg) poolYAML(x poolShape) string {
	policy, after, budgets, expire, grace := "WhenEmptyOrUnderutilized", "0s", `[{nodes: "100%"}]`, "Never", ""
	weight, limits, annotations := "", "", ""
	if !g.open {
		policy = pick(g, "WhenEmptyOrUnderutilized", "WhenEmptyOrUnderutilized", "WhenEmptyOrUnderutilized", "WhenEmpty", "Balanced")
		after = pick(g, "0s", "0s", "30s", "5m", "1h", "Never")
		budgets = pick(g, `[{nodes: "100%"}]`, `[{nodes: "100%"}]`, `[{nodes: "10%"}]`, `[{nodes: "33%"}]`, `[{nodes: "5"}]`, `[{nodes: "1", reasons: [Underutilized]}, {nodes: "50%", reasons: [Empty, Drifted]}]`,
			`[{nodes: "20%", schedule: "0 9 * * *", duration: 8h}, {nodes: "50%"}]`, `[{nodes: "0", schedule: "0 0 * * *", duration: 1h}]`, `[{nodes: "0", reasons: [Drifted]}, {nodes: "100%"}]`,
			`[{nodes: "3", schedule: "@daily", duration: 24h}]`)
		expire = pick(g, "Never", "Never", "720h", "240h", "26h", "2h")
		if g.p(0.3) {
			grace = "\n      terminationGracePeriod: " + pick(g, "30m", "24h")
		}
		if g.p(0.15) {
			annotations = ""
		}
	}
	if g.p(0.4) {
		weight = fmt.Sprintf("\n  weight: %d", 1+g.r.IntN(100))
	}
	if !g.open && g.p(0.3) {
		limits = fmt.Sprintf("\n  limits: {cpu: %d}", 50+g.r.IntN(4000))
	}
	taint := ""
	if x.gpu {
		taint = "\n      taints: [{key: nvidia.com/gpu, value: \"true\", effect: NoSchedule}]"
	}
	return fmt.Sprintf(`---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %s}
spec:%s%s
  disruption: {consolidationPolicy: %s, consolidateAfter: %s, budgets: %s}
  template:
    metadata: {labels: {team: %s}%s}
    spec:
      expireAfter: %s%s%s
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
      - {key: karpenter.k8s.aws/instance-family, operator: In, values: [%s]}
      - {key: kubernetes.io/arch, operator: In, values: [%s]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [%s]}
      - {key: topology.kubernetes.io/zone, operator: In, values: [us-east-1a, us-east-1b, us-east-1c]}
      - {key: karpenter.k8s.aws/instance-size, operator: In, values: [%s]}
`, x.name, weight, limits, policy, after, budgets, x.name, annotations, expire, grace, taint, strings.Join(x.families, ", "), x.arch, x.capacity, strings.Join(x.sizes, ", "))
}

func q(s string) resource.Quantity { return resource.MustParse(s) }

// stranger draws a cluster.
func stranger(seed uint64, size int, open, plain bool) (*sg, error) {
	g := &sg{r: rand.New(rand.NewPCG(seed, 0x57a6e)), open: open, plain: plain, types: map[string]*instancetypes.InstanceType{}, free: map[string]corev1.ResourceList{}, node: map[string]*corev1.Node{}, on: map[string][]*corev1.Pod{}, at: now()}
	std := []string{"large", "xlarge", "2xlarge", "4xlarge", "8xlarge"}
	shapes := []poolShape{{name: "general", arch: "amd64", capacity: pick(g, "on-demand", "on-demand", "\"on-demand\", \"spot\"", "\"on-demand\", \"spot\", \"reserved\""), sizes: std, families: []string{"m5", "m6i", "c6i", "r6i"}}}
	if open {
		shapes[0].capacity = "on-demand"
	}
	if g.p(0.4) {
		shapes = append(shapes, poolShape{name: "arm", arch: "arm64", capacity: "on-demand", sizes: std, families: []string{"m7g", "c7g", "r7g"}})
	}
	if g.p(0.4) {
		shapes = append(shapes, poolShape{name: "spot", arch: "amd64", capacity: "spot", sizes: std[:4], families: []string{"m5", "m6i", "c6i", "c5", "r5", "m5a"}})
		if open {
			shapes = shapes[:len(shapes)-1]
		}
	}
	if g.p(0.35) {
		shapes = append(shapes, poolShape{name: "gpu", arch: "amd64", capacity: pick(g, "on-demand", "\"on-demand\", \"spot\""), gpu: true, sizes: []string{"xlarge", "2xlarge", "4xlarge", "12xlarge"}, families: []string{"g4dn", "g5"}})
		if open {
			shapes[len(shapes)-1].capacity = "on-demand"
		}
	}
	if g.p(0.2) {
		shapes = append(shapes, poolShape{name: "small", arch: "amd64", capacity: "on-demand", sizes: []string{"medium", "large"}, families: []string{"t3", "m5"}})
	}
	text := `apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec: {amiSelectorTerms: [{alias: al2023@latest}], role: node, subnetSelectorTerms: [{tags: {a: b}}], securityGroupSelectorTerms: [{tags: {a: b}}]}
`
	for _, x := range shapes {
		text += g.poolYAML(x)
	}
	m, err := manifests.Parse([]manifests.File{{Name: "s.yaml", Data: []byte(text)}}, &manifests.Options{Classes: pipeline.NodeClassDecoders()})
	if err != nil {
		return nil, err
	}
	g.m = m
	market, err := pipeline.EC2Market("us-east-1")
	if err != nil {
		return nil, err
	}
	s, _, err := pipeline.Snapshot(m, market)
	if err != nil {
		return nil, err
	}
	if strings.Contains(shapes[0].capacity, "reserved") {
		list, err := ec2.Reserve(s.Pools[0].Types, ec2.Reservation{ID: "cr-0000000000000001", InstanceType: "m5.2xlarge", Zone: "us-east-1a", Count: 1 + g.r.IntN(5)})
		if err != nil {
			return nil, err
		}
		for i := range s.Pools {
			s.Pools[i].Types = list
		}
	}
	for i := range s.Pools[0].Types {
		g.types[s.Pools[0].Types[i].Name] = &s.Pools[0].Types[i]
	}
	for i := 1; i < len(s.Pools); i++ {
		for k := range s.Pools[i].Types {
			if g.types[s.Pools[i].Types[k].Name] == nil {
				g.types[s.Pools[i].Types[k].Name] = &s.Pools[i].Types[k]
			}
		}
	}
	g.daemonSets()
	big := g.p(0.3)
	for range size {
		g.draw(shapes, big)
	}
	if !open {
		for range g.r.IntN(3) {
			g.stray()
		}
	}
	g.classes()
	util := 0.25 + 0.35*g.r.Float64()
	g.workloads(util)
	g.shrink()
	if !open {
		g.trouble()
	}
	g.s = s
	g.s.Nodes, g.s.Pods = g.nodes, g.pods
	g.s.DaemonSets, g.s.PersistentVolumes, g.s.PersistentVolumeClaims, g.s.StorageClasses = m.DaemonSets, m.PersistentVolumes, m.PersistentVolumeClaims, m.StorageClasses
	g.s.PriorityClasses = m.PriorityClasses
	g.s.NodeClaims = nil
	for i := range m.NodeClaims {
		g.s.NodeClaims = append(g.s.NodeClaims, pipeline.NodeClaim(&m.NodeClaims[i]))
	}
	if !open {
		g.pdbStatus()
	}
	return g, nil
}

func (g *sg) daemonSets() {
	one := func(name, cpu, mem string, port int32, sel map[string]string) {
		d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, UID: types.UID("ds-" + name)}}
		d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"ds": name}}
		d.Spec.Template.Labels = map[string]string{"ds": name}
		d.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		d.Spec.Template.Spec.NodeSelector = sel
		c := corev1.Container{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": q(cpu), "memory": q(mem)}}}
		if port > 0 {
			c.Ports = []corev1.ContainerPort{{ContainerPort: port, HostPort: port, Protocol: corev1.ProtocolTCP}}
		}
		d.Spec.Template.Spec.Containers = []corev1.Container{c}
		g.m.DaemonSets = append(g.m.DaemonSets, d)
	}
	one("cni", "50m", "64Mi", 0, nil)
	if g.p(0.7) {
		one("logs", "100m", "256Mi", 0, nil)
	}
	if g.p(0.6) {
		one("exporter", "20m", "50Mi", 9100, nil)
	}
	if g.p(0.3) {
		one("armtool", "100m", "100Mi", 0, map[string]string{"kubernetes.io/arch": "arm64"})
	}
}

func (g *sg) draw(shapes []poolShape, big bool) {
	x := shapes[0]
	if len(shapes) > 1 && g.p(0.45) {
		x = shapes[1+g.r.IntN(len(shapes)-1)]
	}
	var t *instancetypes.InstanceType
	for range 50 {
		size := pick(g, x.sizes...)
		if big && g.p(0.5) {
			size = x.sizes[len(x.sizes)-1]
		}
		if t = g.types[pick(g, x.families...)+"."+size]; t != nil {
			break
		}
	}
	if t == nil {
		return
	}
	zone := pick(g, zones...)
	capacity := strings.Trim(pick(g, strings.Split(x.capacity, ", ")...), `"`)
	var off *instancetypes.Offering
	for i := range t.Offerings {
		o := &t.Offerings[i]
		if o.Requirements.Get(corev1.LabelTopologyZone).Contains(zone) && o.CapacityType() == capacity && o.Available {
			off = o
		}
	}
	if off == nil {
		return
	}
	g.n++
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("ip-10-%d-%d", g.n/250, g.n%250), Labels: map[string]string{}, Annotations: map[string]string{}}}
	for _, set := range []map[string]string{t.Requirements.Labels(), off.Requirements.Labels()} {
		for k, v := range set {
			n.Labels[k] = v
		}
	}
	n.Labels["kubernetes.io/os"], n.Labels["team"] = "linux", x.name
	n.Labels["kubernetes.io/hostname"], n.Labels["karpenter.sh/nodepool"] = n.Name, x.name
	n.Labels["karpenter.sh/registered"], n.Labels["karpenter.sh/initialized"] = "true", "true"
	n.CreationTimestamp = metav1.NewTime(g.at.Add(-time.Duration(1+g.r.IntN(25*60)) * time.Minute))
	if g.p(0.3) {
		n.CreationTimestamp = metav1.NewTime(g.at.Add(-time.Duration(1+g.r.IntN(20*24)) * time.Hour))
	}
	n.Status.Capacity, n.Status.Allocatable = t.Capacity, t.Allocatable()
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	n.Spec.ProviderID = "aws:///" + zone + "/i-" + n.Name
	if x.gpu {
		n.Spec.Taints = []corev1.Taint{{Key: "nvidia.com/gpu", Value: "true", Effect: corev1.TaintEffectNoSchedule}}
	}
	g.add(n)
	if g.p(0.7) {
		c := nodeclaim.NodeClaim{Name: "claim-" + n.Name, APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Pool: x.name, NodeName: n.Name, ProviderID: n.Spec.ProviderID, Capacity: n.Status.Capacity, Allocatable: n.Status.Allocatable}
		c.Metadata.Name, c.Metadata.CreationTimestamp, c.Metadata.Labels = c.Name, n.CreationTimestamp, n.Labels
		for i := range g.m.NodePools {
			if g.m.NodePools[i].Name == x.name {
				c.ExpireAfter, c.TerminationGracePeriod = g.m.NodePools[i].Disruption.ExpireAfter, g.m.NodePools[i].TerminationGracePeriod
			}
		}
		for _, kind := range []string{"Launched", "Registered", "Initialized"} {
			c.Conditions = append(c.Conditions, metav1.Condition{Type: kind, Status: "True", LastTransitionTime: n.CreationTimestamp})
		}
		if !g.open {
			c.LastPodEvent = g.at.Add(-time.Duration(g.r.IntN(120)) * time.Minute)
			if g.p(0.05) {
				c.Conditions = append(c.Conditions, metav1.Condition{Type: "Drifted", Status: "True", Reason: "AMIDrift", LastTransitionTime: metav1.NewTime(g.at.Add(-time.Hour))})
			}
			if g.p(0.03) {
				at := metav1.NewTime(g.at.Add(-time.Minute))
				c.Metadata.DeletionTimestamp = &at
			}
		}
		g.m.NodeClaims = append(g.m.NodeClaims, c)
	}
}

func (g *sg) add(n *corev1.Node) {
	g.nodes = append(g.nodes, n)
	g.node[n.Name] = n
	g.free[n.Name] = n.Status.Allocatable.DeepCopy()
	for _, d := range g.m.DaemonSets {
		ok := true
		for k, v := range d.Spec.Template.Spec.NodeSelector {
			ok = ok && n.Labels[k] == v
		}
		if !ok {
			continue
		}
		yes := true
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name + "-" + n.Name, Labels: d.Spec.Template.Labels, OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: d.Name, UID: d.UID, Controller: &yes}}}}
		p.Spec = *d.Spec.Template.Spec.DeepCopy()
		g.bind(p, n.Name)
	}
}

// stray is a node of no pool.
func (g *sg) stray() {
	t := g.types["m5.xlarge"]
	g.n++
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("static-%d", g.n), Labels: map[string]string{"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "topology.kubernetes.io/zone": pick(g, zones...)}}}
	n.Labels["kubernetes.io/hostname"] = n.Name
	n.Status.Capacity, n.Status.Allocatable = t.Capacity, t.Allocatable()
	n.CreationTimestamp = metav1.NewTime(g.at.Add(-1000 * time.Hour))
	g.add(n)
	p := g.pod("kube-system", "apiserver-"+n.Name, "apiserver", "100m", "128Mi")
	p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "Node", Name: n.Name, APIVersion: "v1"}}
	g.bind(p, n.Name)
}

func (g *sg) pod(ns, name, app, cpu, mem string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: map[string]string{"app": app}, Annotations: map[string]string{}, UID: types.UID(ns + "/" + name)}}
	p.CreationTimestamp = metav1.NewTime(g.at.Add(-3 * time.Hour))
	p.Spec.Containers = []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": q(cpu), "memory": q(mem)}}}}
	return p
}

func (g *sg) bind(p *corev1.Pod, node string) {
	p.Spec.NodeName = node
	p.Status.Phase = corev1.PodRunning
	at := metav1.NewTime(g.at.Add(-2 * time.Hour))
	p.Status.StartTime = &at
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at}, {Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: at}}
	for _, c := range p.Spec.Containers {
		for k, v := range c.Resources.Requests {
			f := g.free[node][k]
			f.Sub(v)
			g.free[node][k] = f
		}
	}
	f := g.free[node]["pods"]
	f.Sub(q("1"))
	g.free[node]["pods"] = f
	g.on[node] = append(g.on[node], p)
	g.pods = append(g.pods, p)
}

func (g *sg) fits(p *corev1.Pod, n *corev1.Node) bool {
	for k, v := range p.Spec.NodeSelector {
		if n.Labels[k] != v {
			return false
		}
	}
	for _, t := range n.Spec.Taints {
		ok := false
		for _, x := range p.Spec.Tolerations {
			ok = ok || x.Key == t.Key || x.Key == ""
		}
		if !ok {
			return false
		}
	}
	f := g.free[n.Name]["pods"]
	if f.Sign() <= 0 {
		return false
	}
	for _, c := range p.Spec.Containers {
		for k, v := range c.Resources.Requests {
			if f, ok := g.free[n.Name][k]; !ok || f.Cmp(v) < 0 {
				return false
			}
		}
		for _, port := range c.Ports {
			for _, o := range g.on[n.Name] {
				for _, oc := range o.Spec.Containers {
					for _, op := range oc.Ports {
						if port.HostPort > 0 && op.HostPort == port.HostPort {
							return false
						}
					}
				}
			}
		}
	}
	anti := func(a, b *corev1.Pod, key string) bool {
		if a.Spec.Affinity == nil || a.Spec.Affinity.PodAntiAffinity == nil || a.Namespace != b.Namespace {
			return false
		}
		for _, t := range a.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			if t.TopologyKey == key && labels.SelectorFromSet(t.LabelSelector.MatchLabels).Matches(labels.Set(b.Labels)) {
				return true
			}
		}
		return false
	}
	for _, o := range g.on[n.Name] {
		if anti(p, o, "kubernetes.io/hostname") || anti(o, p, "kubernetes.io/hostname") {
			return false
		}
	}
	for _, other := range g.nodes {
		if other.Labels["topology.kubernetes.io/zone"] != n.Labels["topology.kubernetes.io/zone"] {
			continue
		}
		if p.Spec.Affinity != nil {
			for _, o := range g.on[other.Name] {
				if anti(p, o, "topology.kubernetes.io/zone") {
					return false
				}
			}
		}
	}
	return true
}

func (g *sg) place(p *corev1.Pod, zone string) string {
	for range 40 {
		n := pick(g, g.nodes...)
		if zone != "" && n.Labels["topology.kubernetes.io/zone"] != zone {
			continue
		}
		if g.fits(p, n) {
			return n.Name
		}
	}
	for _, n := range g.nodes {
		if (zone == "" || n.Labels["topology.kubernetes.io/zone"] == zone) && g.fits(p, n) {
			return n.Name
		}
	}
	return ""
}

func (g *sg) classes() {
	for name, v := range map[string]int32{"critical": 1000000, "batch-low": -1000000} {
		g.m.PriorityClasses = append(g.m.PriorityClasses, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: v})
	}
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	g.m.StorageClasses = append(g.m.StorageClasses, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "gp3"}, Provisioner: "ebs.csi.aws.com", VolumeBindingMode: &mode})
}

func (g *sg) workloads(util float64) {
	total, used := 0.0, 0.0
	for _, n := range g.nodes {
		total += n.Status.Allocatable.Cpu().AsApproximateFloat64()
	}
	for w := 0; used < util*total && w < 400; w++ {
		ns := pick(g, "shop", "data", "ml")
		app := fmt.Sprintf("app%d", w)
		cpu := pick(g, "50m", "100m", "250m", "500m", "1", "2", "3900m")
		mem := pick(g, "64Mi", "128Mi", "512Mi", "1Gi", "2Gi", "4Gi", "7Gi", "16Gi")
		count := 1 + g.r.IntN(4)
		if g.p(0.4) {
			count = 2 + g.r.IntN(30)
		}
		kind := "ReplicaSet"
		proto := g.pod(ns, app, app, cpu, mem)
		yes := true
		switch k := g.r.Float64(); {
		case k < 0.12: // stateful
			kind = "StatefulSet"
			count = 1 + g.r.IntN(5)
		case k < 0.2:
			kind = "Job"
		case k < 0.25:
			kind = ""
			count = 1 + g.r.IntN(2)
		}
		if g.open && kind == "" {
			kind = "ReplicaSet"
		}
		if kind != "" {
			proto.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: app, UID: types.UID(ns + app), Controller: &yes}}
		}
		sel := &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
		spread := ""
		if !g.plain {
			if g.p(0.15) {
				spread = "topology.kubernetes.io/zone"
				proto.Spec.TopologySpreadConstraints = append(proto.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{MaxSkew: int32(1 + g.r.IntN(2)), TopologyKey: spread, WhenUnsatisfiable: pick(g, corev1.DoNotSchedule, corev1.ScheduleAnyway), LabelSelector: sel})
			}
			if g.p(0.06) {
				proto.Spec.TopologySpreadConstraints = append(proto.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{MaxSkew: int32(1 + g.r.IntN(3)), TopologyKey: "kubernetes.io/hostname", WhenUnsatisfiable: pick(g, corev1.DoNotSchedule, corev1.ScheduleAnyway), LabelSelector: sel})
			}
			if g.p(0.1) {
				term := corev1.PodAffinityTerm{LabelSelector: sel, TopologyKey: pick(g, "kubernetes.io/hostname", "kubernetes.io/hostname", "topology.kubernetes.io/zone")}
				if g.p(0.3) {
					proto.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 50, PodAffinityTerm: term}}}}
				} else {
					proto.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
				}
			}
			if g.p(0.03) {
				proto.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: sel, TopologyKey: "topology.kubernetes.io/zone"}}}}
			}
			if g.p(0.04) {
				proto.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: int32(8000 + g.r.IntN(4)), Protocol: corev1.ProtocolTCP}}
			}
		}
		gpu := false
		if ns == "ml" && g.p(0.5) {
			gpu = true
			proto.Spec.Tolerations = []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}}
			proto.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = q(pick(g, "1", "1", "1", "2", "4"))
			proto.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": proto.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"]}
			count = 1 + count/4
		} else if g.p(0.05) {
			proto.Spec.Tolerations = []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}}
		}
		if !gpu {
			switch k := g.r.Float64(); {
			case k < 0.5:
				proto.Spec.NodeSelector = map[string]string{"kubernetes.io/arch": "amd64"}
			case k < 0.65:
				proto.Spec.NodeSelector = map[string]string{"kubernetes.io/arch": "arm64"}
			case k < 0.7:
				proto.Spec.NodeSelector = map[string]string{"karpenter.sh/nodepool": "general"}
			case k < 0.75:
				proto.Spec.NodeSelector = map[string]string{"topology.kubernetes.io/zone": pick(g, zones...)}
			case k < 0.78 && !g.open:
				proto.Spec.NodeSelector = map[string]string{"karpenter.sh/capacity-type": "on-demand"}
			}
		}
		if g.p(0.1) {
			name, v := "critical", int32(1000000)
			if g.p(0.5) {
				name, v = "batch-low", -1000000
			}
			proto.Spec.PriorityClassName, proto.Spec.Priority = name, &v
		}
		if g.p(0.05) {
			proto.Annotations["controller.kubernetes.io/pod-deletion-cost"] = pick(g, "100", "2000000000", "-2000000000", "50000000")
		}
		if !g.open && g.p(0.04) {
			proto.Annotations["karpenter.sh/do-not-disrupt"] = pick(g, "true", "true", "1h", "24h", "false")
		}
		zone := map[string]int{}
		for i := range count {
			p := proto.DeepCopy()
			p.Name = fmt.Sprintf("%s-%d", app, i)
			p.UID = types.UID(ns + "/" + p.Name)
			where := ""
			hard := spread != "" && proto.Spec.TopologySpreadConstraints[0].WhenUnsatisfiable == corev1.DoNotSchedule
			if hard {
				for _, z := range zones {
					if where == "" || zone[z] < zone[where] {
						where = z
					}
				}
			}
			if a := proto.Spec.Affinity; a != nil && a.PodAffinity != nil && i > 0 {
				for z := range zone {
					where = z
				}
			}
			node := g.place(p, where)
			if node == "" {
				break
			}
			z := g.node[node].Labels["topology.kubernetes.io/zone"]
			zone[z]++
			if kind == "StatefulSet" && !g.plain {
				g.volume(p, z)
			}
			g.bind(p, node)
			used += p.Spec.Containers[0].Resources.Requests.Cpu().AsApproximateFloat64()
		}
		if len(zone) > 0 && g.p(0.35) && !g.open {
			b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: app}}
			b.Spec.Selector = sel
			x := pick(g, intstr.FromInt32(1), intstr.FromInt32(0), intstr.FromString("50%"), intstr.FromString("10%"), intstr.FromString("100%"), intstr.FromInt32(2), intstr.FromString("34%"))
			if g.p(0.6) {
				b.Spec.MaxUnavailable = &x
			} else {
				b.Spec.MinAvailable = &x
			}
			if g.p(0.2) {
				always := policyv1.AlwaysAllow
				b.Spec.UnhealthyPodEvictionPolicy = &always
			}
			g.m.PodDisruptionBudgets = append(g.m.PodDisruptionBudgets, b)
			if g.p(0.1) {
				c := b.DeepCopy()
				c.Name += "-second"
				g.m.PodDisruptionBudgets = append(g.m.PodDisruptionBudgets, c)
			}
		}
	}
}

func (g *sg) volume(p *corev1.Pod, zone string) {
	name := "data-" + p.Name
	class := "gp3"
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + p.Namespace + "-" + p.Name}}
	pv.Spec.Capacity = corev1.ResourceList{"storage": q("10Gi")}
	pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	pv.Spec.StorageClassName = class
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "ebs.csi.aws.com", VolumeHandle: pv.Name}
	pv.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: p.Namespace, Name: name, UID: types.UID("pvc-" + name)}
	pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "topology.kubernetes.io/zone", Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}}}}}}
	pv.Status.Phase = corev1.VolumeBound
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: name, UID: types.UID("pvc-" + name), Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}}}
	c.Spec.AccessModes, c.Spec.StorageClassName, c.Spec.VolumeName = pv.Spec.AccessModes, &class, pv.Name
	c.Spec.Resources.Requests = pv.Spec.Capacity
	c.Status.Phase = corev1.ClaimBound
	g.m.PersistentVolumes = append(g.m.PersistentVolumes, pv)
	g.m.PersistentVolumeClaims = append(g.m.PersistentVolumeClaims, c)
	p.Spec.Volumes = []corev1.Volume{{Name: "d", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
}

// shrink scales workloads down, so that there are holes.
func (g *sg) shrink() {
	share := 0.1 + 0.5*g.r.Float64()
	var out []*corev1.Pod
	for _, p := range g.pods {
		o := metav1.GetControllerOf(p)
		if o != nil && o.Kind == "ReplicaSet" && g.p(share) {
			continue
		}
		out = append(out, p)
	}
	g.pods = out
}

func (g *sg) trouble() {
	for _, n := range g.nodes {
		if n.Labels["karpenter.sh/nodepool"] == "" {
			continue
		}
		switch k := g.r.Float64(); {
		case k < 0.02:
			n.Annotations["karpenter.sh/do-not-disrupt"] = "true"
		case k < 0.04:
			n.Status.Conditions[0].Status = corev1.ConditionFalse
			if g.p(0.5) {
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoSchedule})
			}
		case k < 0.05:
			delete(n.Labels, "karpenter.sh/initialized")
		case k < 0.07:
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule})
		case k < 0.08:
			n.Spec.Unschedulable = true
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "node.kubernetes.io/unschedulable", Effect: corev1.TaintEffectNoSchedule})
		case k < 0.09:
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "maintenance", Effect: corev1.TaintEffectNoSchedule})
		}
	}
	for _, p := range g.pods {
		o := metav1.GetControllerOf(p)
		if o != nil && o.Kind == "DaemonSet" || p.Annotations[corev1.MirrorPodAnnotationKey] != "" {
			continue
		}
		switch k := g.r.Float64(); {
		case k < 0.01:
			at := metav1.NewTime(g.at.Add(20 * time.Second))
			p.DeletionTimestamp = &at
		case k < 0.02 && o != nil && o.Kind == "Job":
			p.Status.Phase = corev1.PodSucceeded
		case k < 0.04:
			p.Status.Conditions[1].Status = corev1.ConditionFalse
		}
	}
	if g.p(0.4) { // pending
		for i := range 1 + g.r.IntN(6) {
			p := g.pod("shop", fmt.Sprintf("pending-%d", i), "pending", pick(g, "100m", "1", "4"), pick(g, "128Mi", "2Gi"))
			yes := true
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "pending", UID: "pending", Controller: &yes}}
			p.Status.Phase = corev1.PodPending
			g.pods = append(g.pods, p)
		}
	}
}

// pdbStatus is what the disruption controller writes.
func (g *sg) pdbStatus() {
	for _, b := range g.m.PodDisruptionBudgets {
		sel, _ := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		expected, healthy := 0, 0
		for _, p := range g.pods {
			if p.Namespace != b.Namespace || !sel.Matches(labels.Set(p.Labels)) || p.Status.Phase == corev1.PodSucceeded {
				continue
			}
			expected++
			if p.DeletionTimestamp == nil && len(p.Status.Conditions) > 1 && p.Status.Conditions[1].Status == corev1.ConditionTrue {
				healthy++
			}
		}
		scaled := func(x *intstr.IntOrString) int {
			if x.Type == intstr.Int {
				return int(x.IntVal)
			}
			var pct int
			fmt.Sscanf(x.StrVal, "%d%%", &pct)
			return int(math.Ceil(float64(pct) * float64(expected) / 100))
		}
		desired := 0
		if b.Spec.MaxUnavailable != nil {
			desired = max(0, expected-scaled(b.Spec.MaxUnavailable))
		} else {
			desired = scaled(b.Spec.MinAvailable)
		}
		b.Status.DesiredHealthy, b.Status.CurrentHealthy, b.Status.ExpectedPods = int32(desired), int32(healthy), int32(expected)
		b.Status.DisruptionsAllowed = int32(max(0, healthy-desired))
	}
}
