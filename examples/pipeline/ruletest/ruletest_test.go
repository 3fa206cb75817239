package ruletest_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/pipeline/ruletest"
	"github.com/joinery-sdk/joinery/examples/plan/survive"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
)

// recorder is a test that keeps what is reported to it.
type recorder struct{ text string }

func (r *recorder) Helper()                           {}
func (r *recorder) Errorf(format string, args ...any) { r.text += fmt.Sprintf(format, args...) + "\n" }

func (r *recorder) Fatalf(format string, args ...any) {
	r.text += "fatal: " + fmt.Sprintf(format, args...) + "\n"
}

func base() ruletest.Scenario {
	return ruletest.New(
		ruletest.Type("a.4", "cpu", "4", "memory", "16Gi").Offer("zone-a", "on-demand", 0.2).Offer("zone-b", "on-demand", 0.2).Offer("zone-a", "spot", 0.1),
		ruletest.Type("arm.4", "cpu", "4", "memory", "16Gi").Label("kubernetes.io/arch", "arm64").Offer("zone-a", "on-demand", 0.15),
		ruletest.Type("a.16", "cpu", "16", "memory", "64Gi").Offer("zone-a", "on-demand", 0.9),
		ruletest.Pool("default"),
	)
}

// The same rules hold or not whether they come from YAML, from Go structs or from a test's demands.
func TestYAMLAndGoSayTheSame(t *testing.T) {
	rules, err := ruletest.ReadFile("testdata/rules.yaml")
	require.NoError(t, err)
	two := 2.0
	want := []ruletest.Rule{
		{Name: "amd64 only", Pods: "shop/web-*", LandsOn: []ruletest.Place{{Labels: "kubernetes.io/arch=amd64"}}},
		{Labels: "app=web", NeverOn: []ruletest.Place{{Zone: "zone-b"}, {CapacityType: "on-demand", Pool: "default"}}},
		{Pods: "shop/web-*", Placed: true, Apart: &ruletest.Company{By: "node"}},
		{Pods: "shop/web-*", Apart: &ruletest.Company{By: "zone", Most: 3}},
		{Pods: "shop/web-*", Together: &ruletest.Company{By: "zone", With: "shop/web-0"}},
		ruletest.AllOrNothing("shop/web-*"),
		ruletest.AllOrNothing("big, shop/web-*"),
		{Pods: "big", Refused: &ruletest.Refusal{Text: "cpu"}},
		{Pods: "big", Refused: &ruletest.Refusal{Stage: "taint", Pool: "default"}},
		{AtMostPerHour: &two},
	}
	for i := range rules {
		assert.Equal(t, "testdata/rules.yaml", rules[i].Position.File)
		assert.Positive(t, rules[i].Position.Line)
		rules[i].Position = manifests.Position{}
	}
	require.Equal(t, want, rules)

	p, err := base().Add(ruletest.Deployment("shop/web", 4).Requests("cpu", "1"), ruletest.Pod("big").Requests("cpu", "99")).Solve()
	require.NoError(t, err)
	var holds []bool
	for _, r := range p.Check(rules...) {
		holds = append(holds, r.Holds())
	}
	assert.Equal(t, []bool{true, true, false, false, false, true, false, true, false, true}, holds, "web-0 is alone with itself")
}

// Every mistake in a file of rules is told with its line, its field and what was probably meant.
func TestMalformedRules(t *testing.T) {
	paths, err := filepath.Glob("testdata/malformed/*.yaml")
	require.NoError(t, err)
	require.Greater(t, len(paths), 15)
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			first, rest, _ := strings.Cut(string(data), "\n")
			want := strings.TrimPrefix(first, "# want ")
			require.NotEqual(t, first, want, "the first line says what is wanted")
			_, err = ruletest.Parse(manifests.File{Name: "rules.yaml", Data: []byte(rest)})
			require.Error(t, err)
			assert.Equal(t, want, strings.ReplaceAll(err.Error(), "\n", " | "))
		})
	}
	_, err = ruletest.Parse(manifests.File{Name: "rules.yaml", Data: []byte("- pods: \"\x00\"")})
	require.ErrorContains(t, err, "NUL")
	_, err = ruletest.Parse(manifests.File{Name: "rules.yaml", Data: []byte(strings.Repeat("[", 5000))})
	require.Error(t, err)
	_, err = ruletest.ReadFile("testdata/missing.yaml")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestRulesMadeByHandAreValidated(t *testing.T) {
	p, err := base().Add(ruletest.Pod("web")).Solve()
	require.NoError(t, err)
	got := p.Check(ruletest.Rule{Name: "empty"}, ruletest.Rule{Refused: &ruletest.Refusal{Stage: "tain"}})
	assert.False(t, got[0].Holds())
	assert.Equal(t, `rule "empty" makes no sense: the rule demands nothing; want one of placed, allOrNothing, landsOn, neverOn, together, apart, spread, atMostPerHour, refused, survives, rulesCost, regret`, got[0].String())
	require.ErrorContains(t, got[1].Invalid, `(did you mean "taint"?)`)
	for _, wrong := range []float64{-1, math.NaN(), math.Inf(1)} {
		for _, r := range p.Check(ruletest.Rule{Pods: "web", AtMostPerHour: &wrong}, ruletest.Rule{RulesCost: &ruletest.RulesCost{AtMostPerMonth: wrong}}) {
			assert.False(t, r.Holds())
			assert.Contains(t, r.String(), fmt.Sprintf("%v dollars", wrong))
			assert.Contains(t, r.String(), fmt.Sprintf("%v: want dollars, 0 or more", wrong))
		}
	}
}

// A scenario, and each thing in it, is a value that its methods leave alone.
func TestScenariosAreValues(t *testing.T) {
	web := ruletest.Deployment("shop/web", 2).Requests("cpu", "1")
	s := base().Add(web)
	_ = web.On("kubernetes.io/arch=arm64").Requests("cpu", "9").Label("a", "b").Edit(func(spec *corev1.PodSpec) { spec.Containers = nil })
	_ = s.Add(ruletest.Pool("other")).Manifests("{").Files("missing").Region("nowhere")
	pool := ruletest.Pool("x").Only("zone").Taint("a:NoSchedule").Limit("cpu", "1").Label("a", "b")
	_, _, _ = pool.Only("b"), pool.Taint("c:NoSchedule"), pool.Limit("cpu", "2").Label("a", "c")
	rec := &recorder{}
	s.Plan(rec).Pods("shop/web-*").LandOn(ruletest.Place{InstanceType: "a.*"}).CostAtMost(0.1)
	assert.Empty(t, rec.text)
}

// A workload of one zone does not survive the loss of it; one of all zones does, where there is room or where it may wait.
func TestSurvival(t *testing.T) {
	zones := ruletest.Type("z.4", "cpu", "4", "memory", "16Gi").Offer("zone-a", "on-demand", 0.2).Offer("zone-b", "on-demand", 0.21).Offer("zone-c", "on-demand", 0.22)
	s := ruletest.New(zones, ruletest.Pool("default"),
		ruletest.Deployment("shop/web", 3).Requests("cpu", "2").Spreads("zone", 1),
		ruletest.Deployment("shop/db", 1).Requests("cpu", "1").On("topology.kubernetes.io/zone=zone-a"))
	p, err := s.Solve()
	require.NoError(t, err)
	results := p.Check(
		ruletest.Rule{Pods: "shop/web-*", Survives: "zone", MayWait: true},
		ruletest.Rule{Pods: "shop/web-*", Survives: "zone, node"},
		ruletest.Rule{Pods: "shop/db-*", Survives: "zone", MayWait: true},
		ruletest.Rule{Pods: "shop/db-*", Survives: "zones"},
		ruletest.Rule{Pods: "shop/db-*", Placed: true, MayWait: true},
	)
	assert.True(t, results[0].Holds(), results[0])
	assert.True(t, results[1].Holds(), "%s: the nodes of other zones have room for one more", results[1])
	require.Len(t, results[2].Breaches, 1)
	assert.Contains(t, results[2].Breaches[0].Why, "the loss of zone zone-a leaves it without a place")
	require.ErrorContains(t, results[3].Invalid, `did you mean "zone"`)
	require.ErrorContains(t, results[4].Invalid, "mayWait")
	rec := &recorder{}
	s.Plan(rec).Pods("shop/web-*").Survive(survive.Zone, survive.Node)
	assert.Empty(t, rec.text)
	s.Plan(rec).Pods("shop/db-*").Survive(survive.Node, survive.Zone)
	assert.Contains(t, rec.text, "without a place")
}

func TestABadScenarioEndsTheTest(t *testing.T) {
	rec := &recorder{}
	base().Add(
		ruletest.Pod("web").Requests("cpu", "lots").On("a in ("), ruletest.Deployment("d", 1).RunningOn("n"),
		ruletest.Pool("p").Only("a in ("), ruletest.ExistingNode("n", "cpu"), ruletest.Type("t", "cpu", "x"),
	).Files("testdata/missing.yaml").Manifests("kind: Pod").Plan(rec)
	for _, part := range []string{"fatal: ", `Pod default/web: cpu "lots"`, `requirements.Parse("a in (")`, "only a Pod can run already", `pool "p"`, `node "n"`, `type "t"`, "missing.yaml", "manifests 1:1"} {
		assert.Contains(t, rec.text, part)
	}
}

func TestPodsThatRunCount(t *testing.T) {
	node := ruletest.ExistingNode("n1", "cpu", "8", "memory", "32Gi").Label("topology.kubernetes.io/zone", "zone-a").Label("karpenter.sh/nodepool", "default")
	s := base().Add(node, ruletest.Pod("shop/db").RunningOn("n1"), ruletest.Deployment("shop/web", 2).Requests("cpu", "1"))
	rec := &recorder{}
	pods := s.Plan(rec).Pods("shop/web-*")
	pods.LandOn(ruletest.Place{Node: "n*"}).CostAtMost(0).AreNear("node", "shop/db").AreTogether("zone")
	require.Empty(t, rec.text)
	pods.AvoidPods("zone", "shop/db")
	assert.Contains(t, rec.text, "shop/web-0: is on existing node n1 (zone-a, pool default), and shares its zone with shop/db; likewise 1 more")
}

func TestTypesOfTheTestsOwn(t *testing.T) {
	types, err := ec2.Catalogue("us-east-1")
	require.NoError(t, err)
	rec := &recorder{}
	plan := ruletest.Scenario{}.Types(types[:50]...).Add(ruletest.Pool("default"), ruletest.Pod("web").Requests("cpu", "1")).Plan(rec)
	var names []string
	for _, typ := range types[:50] {
		names = append(names, typ.Name)
	}
	plan.Pods("web").LandOn(ruletest.Place{InstanceType: strings.Join(names, ",")})
	assert.Empty(t, rec.text)
	plan.Pods("web").LandOn(ruletest.Place{InstanceType: "m5.lagre"})
	assert.Contains(t, rec.text, "there is no type m5.lagre here")
}

// Checking a broken rule of a large plan ends after a bounded amount of work.
func TestExplainingIsBounded(t *testing.T) {
	s := base()
	for i := range 60 {
		s = s.Add(ruletest.Pool(fmt.Sprintf("pool-%d", i)).Weight(1+i).Taint("x:NoSchedule").Limit("cpu", "100"))
	}
	p, err := s.Add(ruletest.Deployment("web", 20_000).Requests("cpu", "100m")).Solve()
	require.NoError(t, err)
	rules := make([]ruletest.Rule, 20)
	if testing.Short() { // the first uses up what all may plan again
		rules = rules[:2]
	}
	for i := range rules {
		rules[i] = ruletest.Rule{Pods: "web-*", LandsOn: []ruletest.Place{{InstanceType: "a.16"}}}
	}
	res := p.Check(rules...)
	assert.Len(t, res, len(rules))
	assert.False(t, res[len(rules)-1].Holds())
	assert.Len(t, res[0].Breaches, 20_000)
	assert.Less(t, len(res[0].String()), 2000)
}

func TestDemandsNeedATest(t *testing.T) {
	p, err := base().Solve()
	require.NoError(t, err)
	assert.Panics(t, func() { p.Pods("*") })
}

// The same scenario gives the same words, whatever the order in which things are added.
func TestWordsDoNotDependOnOrder(t *testing.T) {
	objects := []ruletest.Object{
		ruletest.Pool("heavy").Weight(9).Limit("cpu", "4"), ruletest.Pool("tainted").Taint("a:NoSchedule"),
		ruletest.Deployment("web", 8).Requests("cpu", "1").Spreads("zone", 1), ruletest.Deployment("near", 2).Near("zone", "app=web"),
	}
	want := ""
	orders := 8
	if testing.Short() {
		orders = 3
	}
	for seed := range uint64(orders) {
		r := rand.New(rand.NewPCG(seed, 0))
		r.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
		rec := &recorder{}
		p := base().Add(objects...).Plan(rec)
		p.Pods("*").LandOn(ruletest.Place{Pool: "heavy"}, ruletest.Place{Pool: "tainted"}).CostAtMost(0.1).AreTogether("zone")
		p.Pods("near-*").AvoidPods("zone", "web-*").AreApart("node")
		if want == "" {
			want = rec.text
		}
		require.Equal(t, want, rec.text)
	}
	require.NotEmpty(t, want)
}

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/*.yaml", "testdata/malformed/*.yaml"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(f, err)
		for _, path := range paths {
			data, err := os.ReadFile(path)
			require.NoError(f, err)
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		rules, err := ruletest.Parse(manifests.File{Name: "f", Data: data})
		if err != nil {
			assert.NotEmpty(t, err.Error())
			return
		}
		for _, r := range rules {
			require.NoError(t, r.Validate())
		}
	})
}

func FuzzGlob(f *testing.F) {
	f.Add("shop/web-*", "shop/web-0")
	f.Add("*a*b*", "xxaxxb")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if strings.ContainsAny(pattern, "?[\\") || strings.Contains(text, "/") || len(pattern)+len(text) > 40 {
			return // path.Match reads these in another way
		}
		want, err := filepath.Match(pattern, text)
		require.NoError(t, err)
		require.Equal(t, want, ruletest.Glob(pattern, text))
	})
}

// The rules that the documentation shows can be read as they stand there.
func TestTheRulesOfTheDocumentationParse(t *testing.T) {
	text, err := os.ReadFile("rule.go")
	require.NoError(t, err)
	var sample strings.Builder
	for line := range strings.Lines(string(text)) {
		if line == "//\n" {
			line = "//\t\n"
		}
		if yaml, ok := strings.CutPrefix(line, "//\t"); ok && (sample.Len() > 0 || yaml == "rules:\n") {
			sample.WriteString(yaml)
		}
	}
	rules, err := ruletest.Parse(manifests.File{Name: "rule.go", Data: []byte(sample.String())})
	require.NoError(t, err)
	require.Len(t, rules, 14)
	require.Equal(t, &ruletest.Spread{By: "zone", AtLeast: 3, Skew: 1}, rules[5].Spread)
	require.Len(t, rules[1].LandsOn, 3)
}

// Other pods, pools and capacity types that are not there are slips, too, and the pods of a daemon set have no rules.
func TestNamesThatNothingHas(t *testing.T) {
	p := ruletest.New(ruletest.Pool("gpu").Taint("gpu:NoSchedule"), ruletest.DaemonSet("kube-system/agent"),
		ruletest.Pod("web").Requests("cpu", "1"), ruletest.Pod("cache").Requests("cpu", "1")).Plan(t)
	for _, c := range []struct {
		rule ruletest.Rule
		want string
	}{
		{ruletest.Rule{Pods: "web", Refused: &ruletest.Refusal{Pool: "gpus"}}, `there is no pool gpus here (did you mean "gpu"?)`},
		{ruletest.Rule{Pods: "web", Apart: &ruletest.Company{By: "node", With: "cahce"}}, `"cahce" matches no pending or running pod (did you mean "default/cache"?)`},
		{ruletest.Rule{Pods: "kube-system/agent*", Placed: true}, "kube-system/agent belongs to a DaemonSet"},
	} {
		res := p.Check(c.rule)[0]
		require.False(t, res.Holds())
		require.Contains(t, res.String(), c.want)
	}
	_, err := ruletest.New(ruletest.Pool("default"), ruletest.Type("m", "cpu", "1").Offer("a", "ondemand", 1)).Solve()
	require.ErrorContains(t, err, `capacity type "ondemand": want one of on-demand, spot, reserved (did you mean "on-demand"?)`)
}

// A label that nothing has is a slip: what must not happen by it would hold for ever.
func TestLabelsThatNothingHas(t *testing.T) {
	p := ruletest.New(ruletest.Pool("default").Label("team", "web"), ruletest.Deployment("shop/web", 4).Requests("cpu", "1").Spreads("zone", 1)).Plan(t)
	for _, c := range []struct {
		rule ruletest.Rule
		want string
	}{
		{ruletest.Rule{Apart: &ruletest.Company{By: "zones"}}, `there is no label zones here (did you mean "zone"?)`},
		{ruletest.Rule{Apart: &ruletest.Company{By: "kubernetes.io/hostnam"}}, "there is no label kubernetes.io/hostnam here"},
		{ruletest.Rule{Spread: &ruletest.Spread{By: "racks", AtLeast: 2}}, "there is no label racks here"},
		{ruletest.Rule{NeverOn: []ruletest.Place{ruletest.On("kubernetes.io/arhc=arm64")}}, `there is no label kubernetes.io/arhc here (did you mean "kubernetes.io/arch"?)`},
		{ruletest.Rule{NeverOn: []ruletest.Place{ruletest.On("!gpu")}, Spread: &ruletest.Spread{By: "zone", AtLeast: 9}}, "want at least 9"},
		{ruletest.Rule{Spread: &ruletest.Spread{By: "team", AtLeast: 2}}, "they are on 1 value, want at least 2: 4 on team web"},
	} {
		res := p.Check(c.rule)[0]
		require.False(t, res.Holds())
		require.Contains(t, res.String(), c.want)
	}
	p.Pods("shop/web-*").SpreadOver("zone", 4, 1).SpreadOver("zone", 2, 0)
	node, ok := p.NodeOf("shop/web-0")
	require.True(t, ok)
	require.True(t, strings.HasPrefix(node, "default-"))
	_, ok = p.NodeOf("web-0")
	require.False(t, ok, "it is in another namespace")
}

// A scenario reads what a file system holds: files by pattern, and directories, where files without an object are passed over.
func TestScenarioOfAFileSystem(t *testing.T) {
	pod := func(name string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("{apiVersion: v1, kind: Pod, metadata: {name: " + name + "}, spec: {containers: [{name: a, image: a, resources: {requests: {cpu: 1}}}]}}")}
	}
	fsys := fstest.MapFS{
		"cluster/web.yaml": pod("web"), "cluster/more/cache.yml": pod("cache"), "cluster/README.md": {Data: []byte("# words")},
		"cluster/rules.yaml": {Data: []byte("rules:\n- rule: all are placed\n  placed: true\n")}, "other.yaml": pod("other"),
	}
	base := ruletest.New(ruletest.Pool("default"))
	p, err := base.FS(fsys, "cluster", "*.yaml").Solve()
	require.NoError(t, err)
	for _, name := range []string{"web", "cache", "other"} {
		_, ok := p.NodeOf("default/" + name)
		assert.True(t, ok, name)
	}
	_, err = base.FS(fsys, "clutser").Solve()
	require.ErrorContains(t, err, "clutser: file does not exist")
	_, err = base.FS(fsys, "cluster/rules.yaml").Solve()
	require.Error(t, err, "a file that is named has to hold an object")
}

// Pods that a group can do without may be without a place.
func TestSparesOfAGroup(t *testing.T) {
	s := ruletest.New(
		ruletest.Type("m.2", "cpu", "2", "memory", "8Gi").Offer("zone-a", "on-demand", 0.10), ruletest.Pool("default").Limit("cpu", "4"),
		ruletest.Deployment("lab/train", 4).Requests("cpu", "1500m").Label("scheduling.x-k8s.io/pod-group", "train"),
	).Manifests(`{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {namespace: lab, name: train}, spec: {minMember: 2}}`)
	s.Plan(t).Pods("lab/train-*").AreAllOrNothing()
}

// A value that no node can have is a slip in every way to name a place, whether it is asked for or excluded, alone or in
// a list. What a node may have is not, though the plan does not use it.
func TestValuesThatNothingHas(t *testing.T) {
	p := ruletest.New(
		ruletest.Type("m6a.large", "cpu", "2").Label("karpenter.k8s.aws/instance-cpu", "2").Offer("us-east-1a", "on-demand", 1),
		ruletest.Type("m6a.4xlarge", "cpu", "4").Label("karpenter.k8s.aws/instance-cpu", "4").Offer("us-east-1a", "spot", 1),
		ruletest.Pool("general").Label("team", "web"), ruletest.Pool("open").Only("rack, karpenter.sh/capacity-type=on-demand"),
		ruletest.ExistingNode("old-1", "cpu", "1").Taint("full:NoSchedule").Label("disk", "ssd").Label("topology.kubernetes.io/zone", "cellar"),
		ruletest.Deployment("shop/web", 2).Requests("cpu", "1"),
	).Plan(t)
	for labels, want := range map[string]string{
		"karpenter.sh/capacity-type=Spot":                            `no node here can have karpenter.sh/capacity-type in (Spot) (did you mean "spot"?)`,
		"topology.kubernetes.io/zone=us-east-1z":                     "no node here can have topology.kubernetes.io/zone in (us-east-1z)",
		"failure-domain.beta.kubernetes.io/zone=us-east-1z":          "no node here can have failure-domain.beta.kubernetes.io/zone in (us-east-1z)",
		"karpenter.sh/nodepool=genral":                               `(did you mean "general"?)`,
		"node.kubernetes.io/instance-type in (m6a.4xlarg)":           `(did you mean "m6a.4xlarge"?)`,
		"node.kubernetes.io/instance-type in (m6a.4xlarg,m6a.large)": `(did you mean "m6a.4xlarge"?)`,
		"node.kubernetes.io/instance-type notin (m6a.4xlarg)":        `(did you mean "m6a.4xlarge"?)`,
		"kubernetes.io/arhc notin (arm64)":                           `there is no label kubernetes.io/arhc here`,
		"disk=sdd":                                                   `(did you mean "ssd"?)`,
		"team=wbe":                                                   `(did you mean "web"?)`,
		"karpenter.k8s.aws/instance-cpu=3":                           "no node here can have karpenter.k8s.aws/instance-cpu in (3)",
		"karpenter.k8s.aws/instance-cpu>100000":                      "no node here can have karpenter.k8s.aws/instance-cpu",
		"karpenter.k8s.aws/instance-cpu in (4,7)":                    "no node here can have karpenter.k8s.aws/instance-cpu in (7)",
		"karpenter.sh/capacity-type=spot":                            "",
		"karpenter.sh/capacity-type in (spot,on-demand)":             "",
		"topology.kubernetes.io/zone=cellar":                         "",
		"disk=ssd":                                                   "",
		"disk notin (ssd)":                                           "",
		"rack=r7":                                                    "",
		"disk":                                                       "",
		"karpenter.k8s.aws/instance-cpu>=4, karpenter.k8s.aws/instance-cpu<9": "",
		"kubernetes.io/hostname=a-new-one":                                    "",
	} {
		for _, rule := range []ruletest.Rule{{NeverOn: []ruletest.Place{ruletest.On(labels)}}, {LandsOn: []ruletest.Place{{Pool: "general"}, ruletest.On(labels)}}} {
			res := p.Check(rule)[0]
			if want != "" {
				assert.False(t, res.Holds(), labels)
				assert.Contains(t, res.String(), want)
			} else {
				assert.NotContains(t, res.String(), "here can have", labels)
				assert.NotContains(t, res.String(), "there is no", labels)
			}
		}
	}
	for place, want := range map[ruletest.Place]string{
		{Node: "odl-*"}:            "there is no node odl-* here",
		{Node: "old-1, old-*, ol"}: "there is no node ol here",
		{Node: "old-*"}:            "",
		{Zone: "cellar"}:           "",
		{Zone: "celar"}:            `there is no zone celar here (did you mean "cellar"?)`,
	} {
		res := p.Check(ruletest.Rule{NeverOn: []ruletest.Place{place}})[0]
		assert.Equal(t, want == "", res.Holds(), place)
		assert.Contains(t, res.String(), want)
	}
}

// Each pattern of a list matches a pod, and each value of a selector: the others would hide a typo. A name without a
// namespace is in default, and the hint says where such pods are.
func TestPodsThatNothingHas(t *testing.T) {
	p := ruletest.New(
		ruletest.Pool("default"), ruletest.ExistingNode("old-1", "cpu", "4"), ruletest.Pod("shop/cache-0").Requests("cpu", "1").RunningOn("old-1"),
		ruletest.Deployment("shop/web", 2).Requests("cpu", "1"), ruletest.Pod("shop/api").Requests("cpu", "1"), ruletest.Pod("lab/api").Requests("cpu", "1"), ruletest.Pod("own").Requests("cpu", "1"),
	).Plan(t)
	apart := func(with string) *ruletest.Company {
		return &ruletest.Company{By: "kubernetes.io/hostname", With: with}
	}
	for _, c := range []struct {
		rule ruletest.Rule
		want string
	}{
		{ruletest.Rule{Pods: "shop/web-*, shop/wbe-*", Placed: true}, `"shop/wbe-*" matches no pending or running pod (did you mean "shop/web-*"?)`},
		{ruletest.Rule{Pods: "shop/web-*, shop/cache-*", Placed: true}, ""},
		{ruletest.Rule{Pods: "web-*", Placed: true}, `(a name without a namespace is in default; did you mean "shop/web-*"?)`},
		{ruletest.Rule{Pods: "own, web-*", Placed: true}, `"web-*" matches no pending or running pod (a name without a namespace is in default; did you mean "shop/web-*"?)`},
		{ruletest.Rule{Pods: "api", Placed: true}, `did you mean "*/api", for the pods in lab, shop?)`},
		{ruletest.Rule{Pods: "own", Placed: true}, ""},
		{ruletest.Rule{Pods: "*/web-*", Placed: true}, ""},
		{ruletest.Rule{Pods: "own", Apart: apart("shop/web-*,shop/wbe-*")}, `"shop/wbe-*" matches no pending or running pod`},
		{ruletest.Rule{Pods: "own", Apart: apart("cache-*")}, `did you mean "shop/cache-*"?)`},
		{ruletest.Rule{Labels: "app in (web,ap)", Placed: true}, `no pending or running pod has the label app=ap (did you mean "api"?)`},
		{ruletest.Rule{Labels: "app in (web,cache-0),tier!=x", Placed: true}, ""},
	} {
		res := p.Check(c.rule)[0]
		assert.Equal(t, c.want == "", res.Holds(), "%s", res)
		assert.Contains(t, res.String(), c.want)
	}
}

// A directory is read as by kubectl -f with -R.
func TestFilesOfADirectory(t *testing.T) {
	dir := t.TempDir()
	_, err := ruletest.New(ruletest.Pool("default")).Files(dir).Solve()
	require.EqualError(t, err, "ruletest: "+dir+": no file below it ends in .yaml, .yml or .json")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "apps"), 0o755))
	for name, text := range map[string]string{
		"apps/web.yaml": "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: c, image: i}]}}",
		"values.yaml":   "replicas: 3", "README.md": "# no manifest",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	p := ruletest.New(ruletest.Pool("default")).Files(dir).Plan(t)
	require.True(t, p.Check(ruletest.Rule{Pods: "web", Placed: true})[0].Holds())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "apps", "bad.yml"), []byte("{apiVersion: v1, kind: Pod, metadata: {name: bad}, spec: {container: []}}"), 0o600))
	_, err = ruletest.New(ruletest.Pool("default")).Files(dir).Solve()
	require.ErrorContains(t, err, filepath.Join(dir, "apps", "bad.yml"))
}

// What is a boolean in a manifest is one in a rule.
func TestBooleansOfRules(t *testing.T) {
	for text, want := range map[string]string{
		"true": "", "yes": "", "on": "", "Yes": "", `"yes"`: `want true or false, got the string "yes"`, "yep": `want true or false, got the string "yep"`,
		"no": "demands nothing", "false": "demands nothing",
	} {
		rules, err := ruletest.Parse(manifests.File{Name: "r.yaml", Data: []byte("- pods: web\n  placed: " + text)})
		if want != "" {
			require.ErrorContains(t, err, want, text)
			continue
		}
		require.NoError(t, err, text)
		require.True(t, rules[0].Placed, text)
	}
}

// A spread by a label alone is one over two values or more that differ by one pod at most.
func TestSpreadByALabelAlone(t *testing.T) {
	rules, err := ruletest.Parse(manifests.File{Name: "r.yaml", Data: []byte("- pods: web\n  spread: zone")})
	require.NoError(t, err)
	require.Equal(t, &ruletest.Spread{By: "zone", AtLeast: 2, Skew: 1}, rules[0].Spread)
	_, err = ruletest.Parse(manifests.File{Name: "r.yaml", Data: []byte("- pods: web\n  spread: {by: zone}")})
	require.ErrorContains(t, err, "want atLeast or skew above 0")
}

// Messages do not show the label by which a rule's pods are forced to keep it.
func TestMessagesHideTheMark(t *testing.T) {
	p := base().Add(ruletest.Deployment("shop/web", 6).Requests("cpu", "1").Spreads("zone", 1), ruletest.Deployment("shop/db", 6).Requests("cpu", "1").Spreads("zone", 1)).Plan(t)
	texts := ""
	for _, r := range []ruletest.Rule{
		{Pods: "shop/web-*", Apart: &ruletest.Company{By: "zone"}},
		{Pods: "shop/web-*", Apart: &ruletest.Company{By: "zone", With: "shop/db-*"}},
		{Pods: "shop/web-*", Together: &ruletest.Company{By: "node", With: "shop/db-*"}},
		{Pods: "shop/web-*", Spread: &ruletest.Spread{By: "zone", AtLeast: 9}},
		{Pods: "shop/web-*", Together: &ruletest.Company{By: "zone"}},
	} {
		res := p.Check(r)[0]
		texts += res.String() + "\n"
	}
	require.NotContains(t, texts, "ruletest.joinery.example")
	require.NotContains(t, texts, "pods of the rule")
	require.Contains(t, texts, `moved by pool "default", which has no place for them that keeps the rule, beside spread of app=web over topology.kubernetes.io/zone with skew 1`+"\n")
}

// What makes pods dear may be a requirement of a pool as well as a constraint of theirs.
func TestPricesAreBlamedOnRequirementsOfPools(t *testing.T) {
	p, err := ruletest.New(
		ruletest.Type("a.4", "cpu", "4", "memory", "16Gi").Offer("zone-a", "on-demand", 0.2).Offer("zone-a", "spot", 0.1),
		ruletest.Type("arm.4", "cpu", "4", "memory", "16Gi").Label("kubernetes.io/arch", "arm64").Offer("zone-a", "on-demand", 0.15),
		ruletest.Pool("default").Only("karpenter.sh/capacity-type=on-demand"),
		ruletest.Pod("web").Requests("cpu", "1").On("kubernetes.io/arch=amd64"),
	).Solve()
	require.NoError(t, err)
	for most, want := range map[float64]string{
		0.12: `requirement karpenter.sh/capacity-type in (on-demand) of pool "default": without it the rule holds, for $0.10/h less`,
		0.01: `requirement karpenter.sh/capacity-type in (on-demand) of pool "default", more than any other single constraint or setting of a pool: without it they cost $0.10/h`,
	} {
		assert.Equal(t, []string{want}, p.Check(ruletest.Rule{Pods: "web", AtMostPerHour: &most})[0].MovedBy)
	}
}
