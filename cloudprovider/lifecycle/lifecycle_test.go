package lifecycle_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/lifecycle"
)

func epoch() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// at is the time after some seconds.
func at(seconds int) time.Time { return epoch().Add(time.Duration(seconds) * time.Second) }

func instance(id, token string, created int, state cloudprovider.InstanceState) cloudprovider.Instance {
	return cloudprovider.Instance{ID: id, Claim: "of-" + token, Token: token, State: state, Created: at(created)}
}

// reporting is a claim whose node is ready.
func reporting(c lifecycle.Claim) lifecycle.Claim {
	c.Ready = true
	return c
}

func TestReview(t *testing.T) {
	running, terminating := cloudprovider.Running, cloudprovider.Terminating
	joined := lifecycle.Claim{Name: "a", Token: "t", Created: at(0), Instance: "i-1", Launched: at(5), Registered: at(60)}
	waiting := lifecycle.Claim{Name: "a", Token: "t", Created: at(0)}
	launched := lifecycle.Claim{Name: "a", Token: "t", Created: at(0), Instance: "i-1", Launched: at(5)}
	for _, test := range []struct {
		name      string
		claims    []lifecycle.Claim
		instances []cloudprovider.Instance
		limits    lifecycle.Timeouts
		now       int
		want      string // verdict claim instance
		next      int    // -1 = never
	}{
		{"nothing", nil, nil, lifecycle.Timeouts{}, 0, "", -1},
		{"all is well", []lifecycle.Claim{joined}, []cloudprovider.Instance{instance("i-1", "t", 3, running)}, lifecycle.Timeouts{}, 9999, "", -1},
		{"young orphan", nil, []cloudprovider.Instance{instance("i-1", "t", 3, running)}, lifecycle.Timeouts{}, 92, "", 93},
		{"orphan", nil, []cloudprovider.Instance{instance("i-1", "t", 3, running)}, lifecycle.Timeouts{}, 93, "Orphaned of-t i-1", -1},
		{"orphan on its way out", nil, []cloudprovider.Instance{instance("i-1", "t", 3, terminating)}, lifecycle.Timeouts{}, 99, "", -1},
		{"not ours", nil, []cloudprovider.Instance{instance("i-1", "", 3, running)}, lifecycle.Timeouts{}, 99, "", -1},
		{"same name, other token", []lifecycle.Claim{{Name: "of-old", Token: "new", Created: at(50)}}, []cloudprovider.Instance{instance("i-1", "old", 3, running)}, lifecycle.Timeouts{}, 95, "Orphaned of-old i-1", 350},
		{"surplus", []lifecycle.Claim{joined}, []cloudprovider.Instance{instance("i-1", "t", 3, running), instance("i-0", "t", 1, running)}, lifecycle.Timeouts{}, 99, "Surplus a i-0", -1},
		{"named twice", []lifecycle.Claim{joined}, []cloudprovider.Instance{instance("i-1", "t", 3, running), instance("i-1", "t", 3, running)}, lifecycle.Timeouts{}, 99, "", -1},
		{"named twice, the answer was lost", []lifecycle.Claim{waiting}, []cloudprovider.Instance{instance("i-1", "t", 3, running), instance("i-1", "t", 4, running)}, lifecycle.Timeouts{}, 99, "", 900},
		{"of unknown age", nil, []cloudprovider.Instance{{ID: "i-1", Token: "t", State: running}}, lifecycle.Timeouts{}, 99, "", -1},
		{"surplus, the oldest stays", []lifecycle.Claim{waiting}, []cloudprovider.Instance{instance("i-2", "t", 3, running), instance("i-3", "t", 1, running)}, lifecycle.Timeouts{}, 99, "Surplus a i-2", 900},
		{"surplus, the one not on its way out stays", []lifecycle.Claim{waiting}, []cloudprovider.Instance{instance("i-2", "t", 3, running), instance("i-3", "t", 1, terminating)}, lifecycle.Timeouts{}, 99, "", 900},
		{"the known one is not seen yet", []lifecycle.Claim{launched}, []cloudprovider.Instance{instance("i-0", "t", 3, running)}, lifecycle.Timeouts{}, 10, "Surplus a i-0", 125},
		{"not launched yet", []lifecycle.Claim{waiting}, nil, lifecycle.Timeouts{}, 299, "", 300},
		{"not launched", []lifecycle.Claim{waiting}, nil, lifecycle.Timeouts{}, 300, "NotLaunched a ", -1},
		{"the answer was lost, the machine is there", []lifecycle.Claim{waiting}, []cloudprovider.Instance{instance("i-1", "t", 3, running)}, lifecycle.Timeouts{}, 400, "", 900},
		{"not listed yet", []lifecycle.Claim{launched}, nil, lifecycle.Timeouts{}, 124, "", 125},
		{"vanished", []lifecycle.Claim{launched}, nil, lifecycle.Timeouts{}, 125, "Vanished a i-1", -1},
		{"vanished after it joined", []lifecycle.Claim{joined}, nil, lifecycle.Timeouts{}, 125, "Vanished a i-1", -1},
		{"left out of the list, and its node is ready", []lifecycle.Claim{reporting(joined)}, nil, lifecycle.Timeouts{}, 9999, "", -1},
		{"left out of the list, and too slow", []lifecycle.Claim{reporting(joined)}, nil, lifecycle.Timeouts{Initialize: time.Minute}, 120, "NotInitialized a i-1", -1},
		{"terminating is not vanished", []lifecycle.Claim{joined}, []cloudprovider.Instance{instance("i-1", "t", 3, terminating)}, lifecycle.Timeouts{}, 999, "", -1},
		{"not registered", []lifecycle.Claim{launched}, []cloudprovider.Instance{instance("i-1", "t", 3, running)}, lifecycle.Timeouts{}, 900, "NotRegistered a i-1", -1},
		{"not registered, and never listed", []lifecycle.Claim{launched}, nil, lifecycle.Timeouts{Lag: time.Hour}, 900, "NotRegistered a i-1", 3605},
		{"not initialized, no limit", []lifecycle.Claim{joined}, []cloudprovider.Instance{instance("i-1", "t", 3, running)}, lifecycle.Timeouts{}, 99999, "", -1},
		{"not initialized", []lifecycle.Claim{joined}, []cloudprovider.Instance{instance("i-1", "t", 3, running)}, lifecycle.Timeouts{Initialize: time.Minute}, 120, "NotInitialized a i-1", -1},
	} {
		t.Run(test.name, func(t *testing.T) {
			decisions, next := lifecycle.Review(test.claims, test.instances, test.limits, at(test.now))
			got := ""
			for _, d := range decisions {
				got += fmt.Sprintf("%s %s %s", d.Verdict, d.Claim, d.Instance)
				assert.NotEmpty(t, d.Detail)
				assert.False(t, d.Since.After(at(test.now)))
			}
			assert.Equal(t, test.want, got)
			want := time.Time{}
			if test.next >= 0 {
				want = at(test.next)
			}
			assert.Equal(t, want, next)
			if !next.IsZero() {
				later, _ := lifecycle.Review(test.claims, test.instances, test.limits, next)
				assert.NotEqual(t, decisions, later, "next is when something changes")
				before, _ := lifecycle.Review(test.claims, test.instances, test.limits, next.Add(-1))
				assert.Equal(t, decisions, before, "and nothing changes before")
			}
		})
	}
}

// Whatever the input: an instance of a claim that knows it is never given back for the claim's sake, the order of the
// input does not matter, and carrying decisions out leads to rest.
func TestReviewLaws(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	states := []cloudprovider.InstanceState{cloudprovider.Pending, cloudprovider.Running, cloudprovider.Terminating}
	for range 2000 {
		var claims []lifecycle.Claim
		var instances []cloudprovider.Instance
		for i := range chance.IntN(8) {
			instances = append(instances, instance(fmt.Sprintf("i%d", i), fmt.Sprintf("t%d", chance.IntN(6)), chance.IntN(100), states[chance.IntN(3)]))
		}
		for i := range chance.IntN(5) {
			c := lifecycle.Claim{Name: fmt.Sprintf("c%d", i), Token: fmt.Sprintf("t%d", i), Created: at(chance.IntN(100))}
			if chance.IntN(2) == 0 { // one that it knows: gone, or one of those with its token
				c.Instance, c.Launched = "gone-"+c.Name, c.Created.Add(time.Second)
				if j := chance.IntN(8); j < len(instances) && instances[j].Token == c.Token {
					c.Instance = instances[j].ID
				}
			}
			claims = append(claims, c)
		}
		now := at(chance.IntN(1200))
		decisions, next := lifecycle.Review(claims, instances, lifecycle.Timeouts{}, now)
		chance.Shuffle(len(claims), func(i, j int) { claims[i], claims[j] = claims[j], claims[i] })
		chance.Shuffle(len(instances), func(i, j int) { instances[i], instances[j] = instances[j], instances[i] })
		again, nextAgain := lifecycle.Review(claims, instances, lifecycle.Timeouts{}, now)
		assert.Equal(t, decisions, again)
		assert.Equal(t, next, nextAgain)

		claims = slices.DeleteFunc(claims, func(c lifecycle.Claim) bool {
			return slices.ContainsFunc(decisions, func(d lifecycle.Decision) bool {
				return d.Claim == c.Name && d.Verdict != lifecycle.Orphaned && d.Verdict != lifecycle.Surplus
			})
		})
		instances = slices.DeleteFunc(instances, func(i cloudprovider.Instance) bool {
			return slices.ContainsFunc(decisions, func(d lifecycle.Decision) bool { return d.Instance == i.ID })
		})
		rest, _ := lifecycle.Review(claims, instances, lifecycle.Timeouts{}, now)
		for _, d := range rest {
			// An instance of a claim that was just given up, if that claim knew another one.
			assert.Equal(t, lifecycle.Orphaned, d.Verdict)
		}
	}
}

// Which policy decides: reasons, actions, priorities, times, and the shortest grace of all.
func TestWhichPolicyDecides(t *testing.T) {
	grace := func(d time.Duration) *time.Duration { return &d }
	disk := func(reason string, change func(*cloudprovider.RepairPolicy)) cloudprovider.RepairPolicy {
		p := cloudprovider.RepairPolicy{Condition: "DiskHealthy", Status: corev1.ConditionFalse, Reason: reason, Toleration: time.Minute}
		if change != nil {
			change(&p)
		}
		return p
	}
	reboot := func(p *cloudprovider.RepairPolicy) { p.Reboot = true }
	late := func(p *cloudprovider.RepairPolicy) { p.Toleration = time.Hour }
	urgent := func(p *cloudprovider.RepairPolicy) { p.Priority, p.Grace = 9, grace(time.Hour) }
	network := cloudprovider.RepairPolicy{Condition: "ANetwork", Status: corev1.ConditionFalse, Toleration: time.Minute, Grace: grace(time.Minute)}
	for name, c := range map[string]struct {
		policies []cloudprovider.RepairPolicy
		want     int // -1: none
		grace    *time.Duration
	}{
		"no policy":                  {nil, -1, nil},
		"for any reason":             {[]cloudprovider.RepairPolicy{disk("", nil)}, 0, nil},
		"for another reason":         {[]cloudprovider.RepairPolicy{disk("^Full$", nil)}, -1, nil},
		"for a part of the reason":   {[]cloudprovider.RepairPolicy{disk("", nil), disk("Err", reboot)}, 1, nil},
		"one that waits":             {[]cloudprovider.RepairPolicy{disk("", nil), disk("Err", late)}, -1, nil},
		"no regular expression":      {[]cloudprovider.RepairPolicy{disk("(", nil), disk("", reboot)}, 1, nil},
		"replacing before rebooting": {[]cloudprovider.RepairPolicy{disk("IO", reboot), disk("Err", nil)}, 1, nil},
		"priority before name":       {[]cloudprovider.RepairPolicy{network, disk("", urgent)}, 1, grace(time.Minute)},
		"name":                       {[]cloudprovider.RepairPolicy{disk("", nil), network}, 1, grace(time.Minute)},
		"rebooting though urgent":    {[]cloudprovider.RepairPolicy{disk("IO", func(p *cloudprovider.RepairPolicy) { reboot(p); urgent(p) }), network}, 1, grace(time.Minute)},
	} {
		conditions := []corev1.NodeCondition{
			{Type: "DiskHealthy", Status: corev1.ConditionFalse, Reason: "IOError", LastTransitionTime: metav1.NewTime(at(0))},
			{Type: "ANetwork", Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(at(0))},
		}
		for range 2 {
			slices.Reverse(conditions)
			for _, policies := range [][]cloudprovider.RepairPolicy{c.policies, reversed(c.policies)} {
				got, _, broken := lifecycle.Broken(conditions, policies, at(120))
				require.Equal(t, c.want >= 0, broken, name)
				if c.want >= 0 {
					want := c.policies[c.want]
					want.Grace = c.grace
					assert.Equal(t, want, got, name)
				}
			}
		}
	}
}

func reversed(list []cloudprovider.RepairPolicy) []cloudprovider.RepairPolicy {
	out := slices.Clone(list)
	slices.Reverse(out)
	return out
}

func TestBroken(t *testing.T) {
	policies := []cloudprovider.RepairPolicy{
		{Condition: corev1.NodeReady, Status: corev1.ConditionFalse, Toleration: time.Minute},
		{Condition: corev1.NodeReady, Status: corev1.ConditionUnknown, Toleration: 2 * time.Minute},
	}
	since := []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(at(0))}}
	_, next, broken := lifecycle.Broken(since, policies, at(119))
	assert.False(t, broken)
	assert.True(t, at(120).Equal(next))
	policy, since2, broken := lifecycle.Broken(since, policies, at(120))
	assert.True(t, broken)
	assert.Equal(t, policies[1], policy)
	assert.True(t, at(120).Equal(since2))
	since[0].Status = corev1.ConditionTrue
	_, next, broken = lifecycle.Broken(since, policies, at(9999))
	assert.False(t, broken)
	assert.True(t, next.IsZero())
}

// A node that does not come back is replaced; many at once are not.
func TestRepairs(t *testing.T) {
	policies := []cloudprovider.RepairPolicy{{Condition: corev1.NodeReady, Status: corev1.ConditionUnknown, Toleration: time.Minute}}
	for _, test := range []struct{ nodes, broken, want int }{{1, 1, 1}, {5, 1, 1}, {5, 2, 0}, {6, 2, 2}, {10, 3, 0}, {5, 0, 0}} {
		nodes := []lifecycle.Node{{Claim: "other", Pool: "other", Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
		for i := range test.nodes {
			status := corev1.ConditionTrue
			if i < test.broken {
				status = corev1.ConditionUnknown
			}
			nodes = append(nodes, lifecycle.Node{Claim: fmt.Sprint("n", i), Pool: "p", Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(at(0))}}})
		}
		assert.Empty(t, lifecycle.Repairs(nodes, policies, at(59)))
		got := lifecycle.Repairs(nodes, policies, at(60))
		assert.Len(t, got, test.want, "%+v", test)
		for i, d := range got {
			assert.Equal(t, []any{lifecycle.Irreparable, fmt.Sprint("n", i)}, []any{d.Verdict, d.Claim})
		}
	}
}

// A user can keep a node from repair. It is as broken as before, so that a fault of many stays a fault of many.
func TestDoNotRepair(t *testing.T) {
	policies := []cloudprovider.RepairPolicy{{Condition: corev1.NodeReady, Status: corev1.ConditionUnknown, Toleration: time.Minute}}
	nodes := func(broken int, values ...string) []lifecycle.Node {
		out := make([]lifecycle.Node, 10)
		for i := range out {
			out[i] = lifecycle.Node{Claim: fmt.Sprint("n", i), Pool: "p"}
			if i < broken {
				out[i].Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(at(0))}}
			}
			if i < len(values) {
				out[i].Annotations = map[string]string{lifecycle.DoNotRepair: values[i]}
			}
		}
		return out
	}
	claims := func(nodes []lifecycle.Node) (out []string) {
		for _, d := range lifecycle.Repairs(nodes, policies, at(60)) {
			out = append(out, d.Claim)
		}
		return out
	}
	assert.Equal(t, []string{"n1"}, claims(nodes(2, "true")))
	for _, value := range []string{"false", "True", "1h", ""} {
		assert.Equal(t, []string{"n0", "n1"}, claims(nodes(2, value)), value)
	}
	assert.Empty(t, claims(nodes(3, "true")), "three of ten are broken, whoever may be repaired")
}

// Nodes whose condition is still tolerated say as well that something is wrong with many, so none of them is repaired.
func TestRepairsCountWhatIsStillTolerated(t *testing.T) {
	policies := []cloudprovider.RepairPolicy{
		{Condition: corev1.NodeReady, Status: corev1.ConditionUnknown, Toleration: 30 * time.Minute}, {Condition: "DiskHealthy", Status: corev1.ConditionFalse, Reason: "^Full$"},
	}
	young := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(at(3599))}
	other := corev1.NodeCondition{Type: "DiskHealthy", Status: corev1.ConditionFalse, Reason: "Slow", LastTransitionTime: metav1.NewTime(at(0))}
	well := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at(0))}
	for name, c := range map[string]struct {
		others []corev1.NodeCondition
		want   int
	}{
		"alone":                    {nil, 1},
		"one more":                 {[]corev1.NodeCondition{young}, 1},
		"two more":                 {[]corev1.NodeCondition{young, young}, 0},
		"whatever the reason":      {[]corev1.NodeCondition{young, other}, 0},
		"those that are well":      {[]corev1.NodeCondition{young, well, well}, 1},
		"a condition of no policy": {[]corev1.NodeCondition{young, {Type: "Odd", Status: corev1.ConditionFalse}}, 1},
	} {
		nodes := make([]lifecycle.Node, 10)
		for i := range nodes {
			nodes[i] = lifecycle.Node{Claim: fmt.Sprint("n", i), Pool: "p", Conditions: []corev1.NodeCondition{well}}
			if i > 0 && i <= len(c.others) {
				nodes[i].Conditions = c.others[i-1 : i]
			}
		}
		nodes[0].Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(at(0))}}
		assert.Len(t, lifecycle.Repairs(nodes, policies, at(3600)), c.want, name)
	}
}

// Half an hour of waiting is worth one step of priority, whatever numbers the priorities are, and the most urgent condition of a node counts.
func TestRepairsAgeInTheQueue(t *testing.T) {
	policy := func(condition string, priority int) cloudprovider.RepairPolicy {
		return cloudprovider.RepairPolicy{Condition: corev1.NodeConditionType(condition), Status: corev1.ConditionTrue, Priority: priority}
	}
	policies := []cloudprovider.RepairPolicy{policy("Low", 1), policy("AlsoLow", 1), policy("Middle", 50), policy("High", 99)}
	type since map[string]int // minutes
	for name, c := range map[string]struct {
		first, second since
	}{
		"priority":                     {since{"High": 0}, since{"Middle": 0}},
		"a step is half an hour":       {since{"High": 0}, since{"Middle": 29}},
		"more than that":               {since{"Middle": 31}, since{"High": 0}},
		"two steps":                    {since{"High": 0}, since{"Low": 59}},
		"more than two":                {since{"Low": 61}, since{"High": 0}},
		"equal priorities, one step":   {since{"AlsoLow": 1}, since{"Low": 0}},
		"the most urgent of a node":    {since{"Low": 5, "High": 1}, since{"Middle": 30}},
		"though another of it decides": {since{"High": 0, "Low": 100}, since{"Middle": 31}},
	} {
		for _, names := range [][2]string{{"a", "b"}, {"b", "a"}} { // names decide nothing here
			var nodes []lifecycle.Node
			for i, conditions := range []since{c.first, c.second} {
				n := lifecycle.Node{Claim: names[i], Pool: names[i]}
				for kind, minutes := range conditions {
					n.Conditions = append(n.Conditions, corev1.NodeCondition{Type: corev1.NodeConditionType(kind), Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at(7200 - 60*minutes))})
				}
				nodes = append(nodes, n)
			}
			got := lifecycle.Repairs(nodes, policies, at(7200))
			assert.Equal(t, names[:], []string{got[0].Claim, got[1].Claim}, name)
		}
	}
}

func TestLacks(t *testing.T) {
	startup := []corev1.Taint{{Key: "agent", Effect: corev1.TaintEffectNoSchedule}}
	list := func(gpus string) corev1.ResourceList {
		return corev1.ResourceList{"cpu": resource.MustParse("4"), "example.com/gpu": resource.MustParse(gpus)}
	}
	asked := list("1") // and a volume, which no node lists
	asked["attachable-volumes-csi-disk.example.com"] = resource.MustParse("1")
	volumes := list("1")
	volumes["attachable-volumes-csi-disk.example.com"] = resource.MustParse("20")
	node := func(ready corev1.ConditionStatus, gpus string, taints ...corev1.Taint) *corev1.Node {
		return &corev1.Node{Spec: corev1.NodeSpec{Taints: taints}, Status: corev1.NodeStatus{
			Allocatable: list(gpus), Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}},
		}}
	}
	for name, c := range map[string]struct {
		node     *corev1.Node
		promised corev1.ResourceList
		want     string
	}{
		"nothing":            {node(corev1.ConditionTrue, "1", corev1.Taint{Key: "team", Value: "a"}), list("1"), ""},
		"not ready":          {node(corev1.ConditionFalse, "1"), list("1"), "the node is not ready"},
		"tainted as such":    {node(corev1.ConditionTrue, "1", corev1.Taint{Key: corev1.TaintNodeNotReady}), list("1"), "the node is not ready"},
		"a startup taint":    {node(corev1.ConditionTrue, "1", startup[0]), list("1"), "the node has the taint agent:NoSchedule"},
		"the cloud's taint":  {node(corev1.ConditionTrue, "1", corev1.Taint{Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true"}), list("1"), "the node has the taint node.cloudprovider.kubernetes.io/uninitialized=true:"},
		"a device":           {node(corev1.ConditionTrue, "0"), list("1"), "the node does not offer example.com/gpu yet"},
		"volumes":            {node(corev1.ConditionTrue, "1"), volumes, ""},
		"it never will have": {node(corev1.ConditionTrue, "0"), list("0"), ""},
	} {
		assert.Equal(t, c.want, lifecycle.Lacks(c.node, startup, asked, c.promised), name)
	}
}

func ExampleLacks() {
	node := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
	gpu := corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}
	fmt.Println(lifecycle.Lacks(node, nil, gpu, gpu))
	// Output: the node does not offer example.com/gpu yet
}

func ExampleNode() {
	nodes := []lifecycle.Node{{Claim: "web-1", Pool: "web", Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(at(0))}}}}
	policies := []cloudprovider.RepairPolicy{{Condition: corev1.NodeReady, Status: corev1.ConditionUnknown, Toleration: time.Minute}}
	for _, d := range lifecycle.Repairs(nodes, policies, at(60)) {
		fmt.Println(d.Claim+":", d.Detail)
	}
	// Output: web-1: condition Ready is Unknown for more than 1m0s
}

func ExampleReview() {
	claims := []lifecycle.Claim{
		{Name: "a", Token: "a-1", Created: at(0), Instance: "i-1", Launched: at(2), Registered: at(40)},
		{Name: "b", Token: "b-1", Created: at(0)},
	}
	instances := []cloudprovider.Instance{instance("i-1", "a-1", 1, cloudprovider.Running), instance("i-9", "old", 1, cloudprovider.Running)}
	decisions, next := lifecycle.Review(claims, instances, lifecycle.Timeouts{}, at(100))
	for _, d := range decisions {
		fmt.Println(d.Verdict, d.Instance+":", d.Detail)
	}
	fmt.Println("look again at", next.Format(time.TimeOnly))
	// Output:
	// Orphaned i-9: no claim has its token, and it is older than 1m30s
	// look again at 00:05:00
}

func ExampleBroken() {
	conditions := []corev1.NodeCondition{{Type: "Ready", Status: "False", LastTransitionTime: metav1.NewTime(at(0))}}
	policies := []cloudprovider.RepairPolicy{{Condition: "Ready", Status: "False", Toleration: 30 * time.Minute}}
	_, when, broken := lifecycle.Broken(conditions, policies, at(60))
	fmt.Println(broken, when.UTC().Format(time.TimeOnly))
	// Output: false 00:30:00
}

func ExampleTimeouts() {
	fmt.Println(lifecycle.Timeouts{Orphan: time.Minute}.WithDefaults().Orphan, lifecycle.Timeouts{}.WithDefaults().Orphan)
	// Output: 1m0s 1m30s
}
