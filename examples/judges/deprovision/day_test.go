package deprovision_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/operator/options"

	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/deprovision/policy"
	"github.com/joinery-sdk/joinery/examples/judges/karpenter"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/history"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/pipeline/regret"
	"github.com/joinery-sdk/joinery/examples/replay/day"
)

// dayStep is how far the time of a day moves at once, as in examples/replay.
const dayStep = 5 * time.Minute

// karpentersDay is a day of Karpenter's own provisioning and consolidation.
type karpentersDay struct {
	*reference
	specs   map[string]corev1.PodSpec
	next    map[string]int
	touched map[string]time.Time
}

// scale makes or takes away pods, the newest first.
func (d *karpentersDay) scale(e day.Event) {
	if e.CPU != "" {
		d.specs[e.App] = corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/app", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(e.CPU), corev1.ResourceMemory: resource.MustParse(e.Memory)},
		}}}}
	}
	have := 0
	for _, p := range d.pods {
		if p.Labels["app"] == e.App {
			have++
		}
	}
	yes := true
	for ; have < e.Replicas; have++ {
		name := fmt.Sprintf("%s-%d", e.App, d.next[e.App])
		d.next[e.App]++
		d.pods = append(d.pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID(name), Labels: map[string]string{"app": e.App},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: e.App, UID: "1", Controller: &yes}},
		}, Spec: d.specs[e.App], Status: corev1.PodStatus{Phase: corev1.PodPending}})
	}
	for i := len(d.pods) - 1; i >= 0 && have > e.Replicas; i-- {
		if d.pods[i].Labels["app"] == e.App {
			d.pods = slices.Delete(d.pods, i, i+1)
			have--
		}
	}
}

// provision is Karpenter's plan for the pods that wait, with the cheapest launches.
func (d *karpentersDay) provision(ctx context.Context, now time.Time) error {
	in := karpenter.Input{NodePools: []*karpv1.NodePool{d.pool}, InstanceTypes: map[string][]*cloudprovider.InstanceType{d.pool.Name: d.cloud.types}}
	byName := map[types.NamespacedName]*corev1.Pod{}
	for _, p := range d.pods {
		if p.Spec.NodeName == "" {
			in.Pods = append(in.Pods, p)
			byName[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = p
		} else {
			in.Running = append(in.Running, p)
		}
	}
	if len(in.Pods) == 0 {
		return nil
	}
	for _, name := range slices.Sorted(mapKeys(d.nodes)) {
		in.Nodes = append(in.Nodes, d.nodes[name])
	}
	r, err := karpenter.Solve(ctx, in)
	if err != nil {
		return err
	}
	bind := func(names []types.NamespacedName, node string) {
		for _, name := range names {
			byName[name].Spec.NodeName = node
			byName[name].Status.Phase = corev1.PodRunning
		}
	}
	for _, e := range r.Existing {
		bind(e.Pods, e.Node)
	}
	for _, n := range r.NewNodes {
		d.made++
		node := n.Node(fmt.Sprintf("new-%d", d.made))
		node.Labels[karpv1.NodePoolLabelKey] = d.pool.Name
		node.Labels[karpv1.NodeRegisteredLabelKey], node.Labels[karpv1.NodeInitializedLabelKey] = "true", "true"
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		node.CreationTimestamp = metav1.NewTime(now)
		d.nodes[node.Name] = node
		bind(n.Pods, node.Name)
	}
	return nil
}

// places is which pod is where.
func (d *karpentersDay) places() map[string]string {
	out := map[string]string{}
	for _, p := range d.pods {
		out[p.Name] = p.Spec.NodeName
	}
	return out
}

// play runs the day and writes it as an audit log. At each step Karpenter gives back as many nodes as one reading of its budget allows, which is what our policy
// may in the same time.
func (d *karpentersDay) play(ctx context.Context, events []day.Event, out *history.Writer) error {
	wait, err := time.ParseDuration("5m")
	if err != nil {
		return err
	}
	now, end := events[0].At, events[len(events)-1].At.Add(time.Hour)
	quiet := ""
	for ; !now.After(end); now = now.Add(dayStep) {
		before := d.places()
		for len(events) > 0 && !events[0].At.After(now) {
			d.scale(events[0])
			events = events[1:]
		}
		d.touch(before, now)
		d.busy = map[string]bool{}
		for name := range d.nodes {
			d.busy[name] = now.Sub(d.touched[name]) < wait
		}
		state := fmt.Sprint(d.places(), d.busy)
		if allowed := (len(d.nodes)*20 + 99) / 100; state != quiet {
			d.gone, quiet = 0, state
			for d.gone < allowed {
				before := d.places()
				_, found, err := d.round(ctx)
				if err != nil {
					return err
				}
				if !found {
					break
				}
				quiet = ""
				d.touch(before, now)
				for name := range d.nodes {
					d.busy[name] = now.Sub(d.touched[name]) < wait
				}
			}
		}
		before = d.places()
		if err := d.provision(ctx, now); err != nil {
			return err
		}
		d.touch(before, now)
		o := history.Observation{At: now}
		for _, p := range d.pods {
			o.Pods = append(o.Pods, p.DeepCopy())
		}
		for _, n := range d.nodes {
			o.Nodes = append(o.Nodes, n)
		}
		slices.SortFunc(o.Nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
		if err := out.Observe(o); err != nil {
			return err
		}
	}
	return out.End(now)
}

// touch notes at nodes that their pods have changed.
func (d *karpentersDay) touch(before map[string]string, now time.Time) {
	after := d.places()
	for _, list := range []map[string]string{before, after} {
		for pod := range list {
			if before[pod] != after[pod] {
				d.touched[before[pod]], d.touched[after[pod]] = now, now
			}
		}
	}
}

// Days of Karpenter's own policy are audited. In no hour is the bound above either bill. With the same rule of when a saving is taken, what
// we have paid since the day began is at no hour above what Karpenter has paid, but for what its figures vary by. A single hour can be: the two own different nodes by then,
// and neither knows which pods end next. With the default, which waits with small savings, only the days are compared.
func TestKarpentersDayIsAudited(t *testing.T) {
	if testing.Short() {
		t.Skip("plays a day")
	}
	seeds, apps := []uint64{1, 2}, 6
	if text := os.Getenv("JOINERY_DAYS"); text != "" { // so many days, of so many deployments
		var n int
		_, err := fmt.Sscanf(text, "%d:%d", &n, &apps)
		require.NoError(t, err)
		for seed := 3; seed <= n; seed++ {
			seeds = append(seeds, uint64(seed))
		}
	}
	manifest, err := os.ReadFile("../../replay/pool.yaml")
	require.NoError(t, err)
	market, err := pipeline.EC2Market(pipeline.DefaultRegion)
	require.NoError(t, err)
	m, err := manifests.Parse([]manifests.File{{Name: "pool.yaml", Data: manifest}}, &manifests.Options{Classes: pipeline.NodeClassDecoders()})
	require.NoError(t, err)
	base, _, err := pipeline.Snapshot(m, market)
	require.NoError(t, err)
	ctx := log.IntoContext(t.Context(), logr.Discard())
	ctx = options.ToContext(ctx, &options.Options{IgnoreDRARequests: true, MinValuesPolicy: options.MinValuesPolicyStrict, PreferencePolicy: options.PreferencePolicyRespect})
	for _, seed := range seeds {
		r, err := referenceOf(manifest, base)
		require.NoError(t, err)
		d := &karpentersDay{r, map[string]corev1.PodSpec{}, map[string]int{}, map[string]time.Time{}}
		var file bytes.Buffer
		start := time.Now()
		require.NoError(t, d.play(ctx, day.Generate(seed, apps), history.NewWriter(&file)))
		took := time.Since(start)
		if dir := os.Getenv("JOINERY_RECORD"); dir != "" {
			require.NoError(t, os.WriteFile(fmt.Sprintf("%s/karpenter-%d-%d.jsonl", dir, apps, seed), file.Bytes(), 0o600))
		}
		h, err := history.ReadLogs(m, []history.Log{{Name: "day", Data: &file}}, nil)
		require.NoError(t, err)
		sale, err := h.Sale(market)
		require.NoError(t, err)
		for _, same := range []bool{true, false} {
			name, objective := "default", giveback.Objective{}
			if same {
				name, objective = "any saving, as Karpenter", policy.AnySaving()
			}
			start = time.Now()
			report, err := regret.Audit(t.Context(), h, sale, &regret.Options{Deprovision: &giveback.Options{Objective: objective}, Startup: -1})
			require.NoError(t, err)
			t.Logf("seed %d, %s: Karpenter $%.2f in %.0f s, ours $%.2f with %d evictions, bound $%.2f, audited in %.1f s; notes %v", seed, name,
				report.Paid.Dollars(), took.Seconds(), report.Policy.Dollars(), report.Evictions, report.Bound.Dollars(), time.Since(start).Seconds(), report.Notes)
			above, paid, ours := 0, 0.0, 0.0
			for _, x := range report.Hours {
				if x.Policy > x.Paid {
					above++
				}
				paid, ours = paid+x.Paid.Dollars(), ours+x.Policy.Dollars()
				t.Logf("  %s theirs %.4f ours %.4f bound %.4f; so far theirs %.4f ours %.4f", x.From.Format("15:04"), x.Paid.Dollars(), x.Policy.Dollars(), x.Bound.Dollars(), paid, ours)
				assert.LessOrEqual(t, x.Bound, x.Policy)
				assert.LessOrEqual(t, x.Bound, x.Paid)
				if same {
					assert.LessOrEqual(t, ours, paid*(1+varies), "so far at %s", x.From.Format("15:04"))
				}
			}
			assert.LessOrEqual(t, report.Policy, report.Paid)
			t.Logf("  in %d of %d single hours ours is above theirs", above, len(report.Hours))
			for i, x := range report.Decisions[:min(5, len(report.Decisions))] {
				t.Logf("  %d %s %s %s %s: $%.3f more: %s", i, x.Node, x.InstanceType, x.From.Format("15:04"), x.Kind, x.Regret().Dollars(), x.Better)
			}
		}
	}
}
