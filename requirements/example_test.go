package requirements_test

import (
	"errors"
	"fmt"

	"github.com/joinery-sdk/joinery/requirements"
)

func Example() {
	pool := requirements.MustParse("cpu>=4, cpu<=512, zone in (a,b)")
	pod := requirements.MustOf(requirements.In("zone", "b", "c"), requirements.NotIn("gpu", "old"))
	both, err := pool.Intersect(pod)
	fmt.Println(both, err)
	fmt.Println(both.Matches(map[string]string{"cpu": "8", "zone": "b"}))
	// Output:
	// cpu>=4, cpu<=512, gpu notin (old), zone in (b) <nil>
	// true
}

// Unconstrained, must-be-absent and impossible are three different values, and they print
// differently.
func ExampleRequirement() {
	zone := requirements.In("zone", "a", "b")
	fmt.Println(zone.Contains("a"), zone.AllowsAbsent(), zone.Complement())
	fmt.Println(requirements.NotIn("zone").IsAnything())
	fmt.Println(requirements.DoesNotExist("zone").IsImpossible())
	fmt.Println(zone.Intersect(requirements.In("zone", "c")).IsImpossible())
	// Output:
	// true false zone notin (a,b)
	// true
	// false
	// true
}

func ExampleIn() {
	fmt.Println(requirements.In("zone", "b", "a", "b"))
	// Output: zone in (a,b)
}

func ExampleNotIn() {
	r := requirements.NotIn("zone", "a")
	fmt.Println(r, r.Contains("b"), r.AllowsAbsent())
	// Output: zone notin (a) true true
}

func ExampleExists() {
	r := requirements.Exists("gpu")
	fmt.Println(r, r.Contains(""), r.AllowsAbsent())
	// Output: gpu true false
}

func ExampleDoesNotExist() {
	r := requirements.DoesNotExist("gpu")
	fmt.Println(r, r.Contains(""), r.AllowsAbsent())
	// Output: !gpu false true
}

func ExampleGt() {
	r := requirements.Gt("cpu", 4)
	fmt.Println(r, r.Contains("5"), r.Contains("4"), r.Contains("many"))
	// Output: cpu>=5 true false false
}

func ExampleLt() {
	fmt.Println(requirements.Lt("cpu", 4))
	// Output: cpu<=3
}

func ExampleGte() {
	fmt.Println(requirements.Gte("cpu", 4))
	// Output: cpu>=4
}

func ExampleLte() {
	fmt.Println(requirements.Lte("cpu", 512))
	// Output: cpu<=512
}

func ExampleNew() {
	r, err := requirements.New("cpu", requirements.OpGt, "4")
	fmt.Println(r, err)
	_, err = requirements.New("zone", "Im", "a")
	fmt.Println(err)
	// Output:
	// cpu>=5 <nil>
	// operator: "Im": want one of In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte (did you mean "In"?)
}

func ExampleOperator() {
	var op requirements.Operator = "NotIn"
	fmt.Println(op == requirements.OpNotIn)
	// Output: true
}

func ExampleOperators() {
	fmt.Println(requirements.Operators())
	// Output: [In NotIn Exists DoesNotExist Gt Lt Gte Lte]
}

// No chain of operators says "more than four, or not labelled at all". A union does, and its text
// reads back.
func ExampleRequirement_Union() {
	r := requirements.Gt("cpu", 4).Union(requirements.DoesNotExist("cpu"))
	fmt.Println(r)
	fmt.Println(requirements.MustParse(r.String()).Get("cpu").Equal(r))
	// Output:
	// cpu>=5 | !cpu
	// true
}

func ExampleSet() {
	var anything requirements.Set
	fmt.Println(anything.IsAnything(), anything.Matches(map[string]string{"zone": "a"}))
	fmt.Println(requirements.Impossible().Matches(nil))
	// Output:
	// true true
	// false
}

// The argument open decides whether a key that the node does not mention is unknown or absent.
func ExampleSet_Compatible() {
	pod := requirements.MustParse("team in (shop)")
	node := requirements.MustParse("zone in (a)")
	fmt.Println(pod.Compatible(node, requirements.Keys{}))
	fmt.Println(pod.Compatible(node, requirements.KeysOf("team")))
	// Output:
	// false
	// true
}

func ExampleSet_Conflicts() {
	pod := requirements.MustParse("zone in (a), cpu>4, disk=ssd")
	node := requirements.MustParse("zone in (b,c), cpu=2, disk=ssd")
	for _, c := range pod.Conflicts(node, requirements.Keys{}) {
		fmt.Println(c.Key, "asked:", c.Left, "there:", c.Right)
	}
	// Output:
	// cpu asked: cpu>=5 there: cpu in (2)
	// zone asked: zone in (a) there: zone in (b,c)
}

func ExampleImpossible() {
	fmt.Println(requirements.Impossible())
	// Output: impossible()
}

func ExampleOf() {
	s, err := requirements.Of(requirements.In("zone", "a", "b"), requirements.NotIn("zone", "b"))
	fmt.Println(s, err)
	s, err = requirements.Of(requirements.In("zone", "a"), requirements.In("zone", "b"))
	fmt.Println(s, err)
	// Output:
	// zone in (a) <nil>
	// impossible() requirements: zone: "zone in (a)" and "zone in (b)" have nothing in common
}

func ExampleMustOf() {
	fmt.Println(requirements.MustOf(requirements.Exists("gpu"), requirements.In("arch", "arm64")))
	// Output: arch in (arm64), gpu
}

func ExampleFromLabels() {
	fmt.Println(requirements.FromLabels(map[string]string{"zone": "a", "arch": "arm64"}))
	// Output: arch in (arm64), zone in (a)
}

func ExampleBuilder() {
	var b requirements.Builder
	s, err := b.Add(requirements.Exists("zone")).AddSet(requirements.MustParse("zone!=a, cpu>4")).Set()
	fmt.Println(s, err)
	// Output: cpu>=5, zone, zone notin (a) <nil>
}

func ExampleConflictError() {
	_, err := requirements.Of(requirements.In("zone", "a"), requirements.In("zone", "b"))
	if conflict, ok := errors.AsType[*requirements.ConflictError](err); ok {
		fmt.Println(conflict.Key, "|", conflict.Left, "|", conflict.Right)
	}
	// Output: zone | zone in (a) | zone in (b)
}

func ExampleParse() {
	s, err := requirements.Parse("zone notin (c), cpu>4, !gpu")
	fmt.Println(s, err)
	_, err = requirements.Parse("zone inn (c)")
	fmt.Println(err)
	// Output:
	// cpu>=5, !gpu, zone notin (c) <nil>
	// requirements.Parse("zone inn (c)"): unknown operator "inn": want in, notin, =, !=, >, <, >= or <= (did you mean "in"?) (at "inn (c)")
}

func ExampleParseError() {
	_, err := requirements.Parse("zone in (")
	var parse *requirements.ParseError
	fmt.Println(errors.As(err, &parse))
	fmt.Println(err)
	// Output:
	// true
	// requirements.Parse("zone in ("): missing ")"
}

func ExampleMustParse() {
	fmt.Println(requirements.MustParse("a=1, b!=2").Len())
	// Output: 2
}

func ExampleAlternatives_Conflicts() {
	a := requirements.AnyOf(requirements.MustParse("zone in (a)"), requirements.MustParse("zone in (b), gpu"))
	for _, term := range a.Conflicts(requirements.MustParse("zone in (b,c)"), requirements.Keys{}) {
		fmt.Println(term)
	}
	// Output:
	// [requirements: zone: "zone in (a)" and "zone in (b,c)" have nothing in common]
	// [requirements: gpu: "gpu" and "!gpu" have nothing in common]
}

func ExampleAlternatives() {
	zones := requirements.AnyOf(requirements.MustParse("zone in (a,b)"))
	each := requirements.AnyOf(requirements.MustParse("zone=a"), requirements.MustParse("zone=b"))
	fmt.Println(zones.Subset(each), "though neither covers it alone")
	// Output: true though neither covers it alone
}

func ExampleAnyOf() {
	either := requirements.AnyOf(requirements.MustParse("zone=a"), requirements.MustParse("gpu"), requirements.Impossible())
	fmt.Println(either)
	fmt.Println(either.Matches(map[string]string{"gpu": "t4"}))
	// Output:
	// zone in (a) or gpu
	// true
}

func ExampleKeys() {
	var none requirements.Keys
	fmt.Println(none.Contains("zone"), none.Union(requirements.KeysOf("zone")).Contains("zone"))
	// Output: false true
}

func ExampleKeysOf() {
	for key := range requirements.KeysOf("zone", "arch", "zone").All() {
		fmt.Println(key)
	}
	// Output:
	// arch
	// zone
}

func ExampleAliases() {
	s, err := requirements.KubernetesAliases().Set(requirements.MustParse("beta.kubernetes.io/arch=arm64"))
	fmt.Println(s, err)
	// Output: kubernetes.io/arch in (arm64) <nil>
}

func ExampleNewAliases() {
	ours := requirements.NewAliases(map[string]string{"example.com/pool": "karpenter.sh/nodepool"})
	fmt.Println(ours.Key("example.com/pool"))
	// Output: karpenter.sh/nodepool
}

func ExampleKubernetesAliases() {
	fmt.Println(requirements.KubernetesAliases().Key("failure-domain.beta.kubernetes.io/zone"))
	// Output: topology.kubernetes.io/zone
}

func ExampleNearest() {
	fmt.Println(requirements.Nearest("topology.kubernetes.io/zoen", []string{"topology.kubernetes.io/zone", "kubernetes.io/arch"}))
	// Output: topology.kubernetes.io/zone true
}

func ExampleInvalidError() {
	_, err := requirements.New("cpu", "Gt", "four")
	if invalid, ok := errors.AsType[*requirements.InvalidError](err); ok {
		fmt.Println(invalid.Path)
		fmt.Println(invalid.Detail)
	}
	// Output:
	// values[0]
	// "four": operator Gt needs an integer
}

func ExampleExpression() {
	chain, ok := requirements.MustParse("cpu>4, cpu!=6").Get("cpu").Expressions()
	fmt.Println(chain, ok)
	fmt.Println(requirements.Expression{Key: "gpu", Operator: requirements.OpDoesNotExist})
	// Output:
	// [{cpu Gte [5]} {cpu NotIn [6]}] true
	// {gpu DoesNotExist []}
}

func ExamplePod() {
	pod := requirements.Pod{
		Required:  requirements.AnyOf(requirements.MustParse("arch=arm64")),
		Preferred: []requirements.Preference{{Weight: 10, Nodes: requirements.MustParse("zone=a")}},
	}
	fmt.Println(pod.Required.Matches(map[string]string{"arch": "arm64"}), pod.Preferred[0].Nodes)
	// Output: true zone in (a)
}

func ExamplePreference() {
	p := requirements.Preference{Weight: 50, Nodes: requirements.MustParse("zone=a")}
	fmt.Println(p.Weight, p.Nodes.Matches(map[string]string{"zone": "b"}))
	// Output: 50 false
}
