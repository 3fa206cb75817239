package availability_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/availability"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
)

func epoch() time.Time { return time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC) }

// at is the time after some minutes.
func at(minutes float64) time.Time {
	return epoch().Add(time.Duration(minutes * float64(time.Minute)))
}

func spot(zone string) requirements.Set {
	return requirements.MustOf(requirements.In(corev1.LabelTopologyZone, zone), requirements.In(instancetypes.LabelCapacityType, "spot"))
}

func refusal(name, zone string) cloudprovider.Refusal {
	return cloudprovider.Refusal{Type: name, Offering: spot(zone)}
}

// catalogue has types of three families in two zones, on demand and spot; catalogues say more of an offering than
// refusals do.
func catalogue() []instancetypes.InstanceType {
	var types []instancetypes.InstanceType
	for _, family := range []string{"m5", "c5", "r5", "t3"} {
		for _, size := range []string{"large", "xlarge", "2xlarge", "4xlarge"} {
			t := instancetypes.InstanceType{Name: family + "." + size, Requirements: requirements.MustOf(requirements.In("family", family))}
			for _, zone := range []string{"a", "b"} {
				for _, capacityType := range []string{"spot", "on-demand"} {
					t.Offerings = append(t.Offerings, instancetypes.Offering{Price: 1, Available: true, Requirements: requirements.MustOf(
						requirements.In(corev1.LabelTopologyZone, zone), requirements.In(instancetypes.LabelCapacityType, capacityType),
						requirements.In(instancetypes.LabelZoneID, "id-"+zone))})
				}
			}
			types = append(types, t)
		}
	}
	return types
}

// missing counts what the ledger takes out of the catalogue.
func missing(l availability.Ledger, now time.Time) (n int) {
	for _, t := range l.Apply(catalogue(), now) {
		for _, o := range t.Offerings {
			if !o.Available {
				n++
			}
		}
	}
	return n
}

func TestBackOffGrows(t *testing.T) {
	var l availability.Ledger
	now := at(0)
	for strike, minutes := range []float64{3, 6, 12, 24, 48, 60, 60} {
		l = l.Refuse(now, refusal("m5.large", "a"))
		active := l.Active(now)
		require.Len(t, active, 1)
		assert.Equal(t, strike+1, active[0].Strikes)
		assert.Equal(t, time.Duration(minutes)*time.Minute, active[0].Until.Sub(now))
		assert.Equal(t, 1, missing(l, active[0].Until.Add(-1)))
		assert.Equal(t, 0, missing(l, active[0].Until))
		next, ok := l.Next(now)
		assert.True(t, ok)
		assert.Equal(t, active[0].Until, next)
		// Answers to launches that were under way already do not count.
		assert.Equal(t, l, l.Refuse(now.Add(time.Second), refusal("m5.large", "a")))
		now = next
		_, ok = l.Next(now)
		assert.False(t, ok)
	}
	// After an hour without refusals it starts anew.
	l = l.Refuse(now.Add(time.Hour), refusal("m5.large", "a"))
	assert.Equal(t, 1, l.Records()[0].Strikes)
}

func TestWidens(t *testing.T) {
	var l availability.Ledger
	l = l.Refuse(at(0), refusal("m5.large", "a"), refusal("m5.xlarge", "a"))
	assert.Equal(t, 2, missing(l, at(0)))
	l = l.Refuse(at(0), refusal("m5.2xlarge", "b"))
	assert.Equal(t, 3, missing(l, at(0)), "another zone is another place")
	l = l.Refuse(at(1), refusal("m5.2xlarge", "a"))
	assert.Equal(t, 5, missing(l, at(1)), "the family m5 in a as spot, and one in b")

	for _, family := range []string{"c5", "r5"} {
		for _, size := range []string{"large", "xlarge", "2xlarge"} {
			l = l.Refuse(at(2), refusal(family+"."+size, "a"))
		}
	}
	assert.Equal(t, 17, missing(l, at(2)), "all 16 types in a as spot, and one in b")
	scopes := map[availability.Scope]int{}
	for _, r := range l.Active(at(2)) {
		scopes[r.Scope]++
	}
	assert.Equal(t, map[availability.Scope]int{availability.OfOffering: 10, availability.OfFamily: 3, availability.OfZone: 1}, scopes)

	// Once it is over, a single refusal of a family that was out as a whole shuts it again, for longer.
	assert.Equal(t, 0, missing(l, at(5)))
	l = l.Refuse(at(6), refusal("c5.4xlarge", "a"))
	why := l.Why(catalogue()[4], catalogue()[4].Offerings[0], at(6))
	require.NotEmpty(t, why)
	assert.Equal(t, availability.OfFamily, why[0].Scope)
	assert.Equal(t, 2, why[0].Strikes)
	assert.Equal(t, 6*time.Minute, why[0].Until.Sub(at(6)))

	// A launch proves that there is capacity.
	l = l.Launched(cloudprovider.Launch{Instance: cloudprovider.Instance{
		Type: "t3.large", Offering: spot("a"), Labels: map[string]string{"family": "t3"},
	}}, at(7))
	for _, r := range l.Records() {
		assert.NotEqual(t, availability.OfZone, r.Scope)
	}
}

func TestNeverWidens(t *testing.T) {
	l := availability.New(availability.Policy{FamilyTypes: -1, ZoneFamilies: -1})
	for _, typ := range catalogue() {
		l = l.Refuse(at(0), refusal(typ.Name, "a"))
	}
	assert.Len(t, l.Records(), 16)
	assert.Equal(t, 16, missing(l, at(0)))
}

func TestQuotaIsApart(t *testing.T) {
	quota := cloudprovider.Quota{Name: "cores of m5", Blocks: requirements.MustParse("family=m5"), Used: 96, Limit: 96}
	l := availability.Ledger{}.Learn(fmt.Errorf("x: %w", &cloudprovider.Error{
		Code: cloudprovider.ErrInsufficientCapacity, Refused: []cloudprovider.Refusal{refusal("c5.large", "a")}, Quotas: []cloudprovider.Quota{quota},
	}), at(0))
	assert.Equal(t, 17, missing(l, at(0)), "4 types, 4 offerings each; and one offering")
	assert.Equal(t, 16, missing(l, at(4)), "quotas last longer")
	assert.Equal(t, 1, missing(l.Free("cores of m5"), at(0)))
	l = l.Exceed(at(5), quota)
	assert.Equal(t, 16, missing(l, at(14)), "and grow in the same way")
	assert.Equal(t, 0, missing(l, at(15)))

	// What counts towards the quota was launched: there is room.
	l = l.Launched(cloudprovider.Launch{Instance: cloudprovider.Instance{Type: "m5.large", Offering: spot("a"), Labels: map[string]string{"family": "m5"}}}, at(6))
	assert.Equal(t, 0, missing(l, at(6)))

	// By the type's name, which catalogues need not have as a label.
	l = availability.Ledger{}.Exceed(at(0), cloudprovider.Quota{Name: "x", Blocks: requirements.MustParse("node.kubernetes.io/instance-type=m5.large")})
	assert.Equal(t, 4, missing(l, at(0)))
	assert.Equal(t, availability.Ledger{}, availability.Ledger{}.Learn(fmt.Errorf("no detail"), at(0)))
}

func TestLaunchedReports(t *testing.T) {
	var l availability.Ledger
	l = l.Refuse(at(0), refusal("m5.large", "b"))
	l = l.Launched(cloudprovider.Launch{
		Instance: cloudprovider.Instance{Type: "m5.large", Offering: spot("b")}, Refused: []cloudprovider.Refusal{refusal("m5.large", "a")},
	}, at(1))
	records := l.Records()
	require.Len(t, records, 1)
	assert.True(t, records[0].Where.Equal(spot("a")))
}

func TestApplyLeavesItsArgument(t *testing.T) {
	types := catalogue()
	l := availability.Ledger{}.Refuse(at(0), refusal("m5.large", "a"))
	before := l.Records()
	out := l.Apply(types, at(0))
	assert.Equal(t, catalogue(), types)
	assert.False(t, out[0].Offerings[0].Available)
	_ = l.Refuse(at(0), refusal("m5.xlarge", "a"))
	assert.Equal(t, before, l.Records())
	before[0].Name = "changed"
	assert.NotEqual(t, before, l.Records())
}

func TestRecordsSurviveARestart(t *testing.T) {
	policy := availability.Policy{First: time.Minute}
	l := availability.New(policy).Refuse(at(0), refusal("m5.large", "a"), refusal("m5.large", "b")).
		Exceed(at(0), cloudprovider.Quota{Name: "q", Blocks: requirements.MustParse("family=c5")})
	data, err := json.Marshal(l.Records())
	require.NoError(t, err)
	var records []availability.Record
	require.NoError(t, json.Unmarshal(data, &records))
	slices.Reverse(records)
	again, err := availability.From(policy, records)
	require.NoError(t, err)
	assert.Equal(t, l, again)

	_, err = availability.From(policy, append(records, records[0], availability.Record{Scope: "Planet", Where: requirements.Impossible(), Since: at(1), Until: at(0)},
		availability.Record{Scope: availability.OfZone, Name: "a", Strikes: 1}))
	for _, text := range []string{
		"records[3]: it has the same subject as records[0]", `records[4].scope: "Planet" is not one of`, "records[4].name: required", "records[4].where",
		"records[4].strikes: 0 is less than 1", "records[4].until: is before since", `records[5].name: "a" must be empty`,
	} {
		require.ErrorContains(t, err, text)
	}
}

func TestFamily(t *testing.T) {
	for name, want := range map[string]string{"m5.large": "m5", "n2-standard-4": "n2-standard", "box": "box", ".x": ".x", "": "", "c7g.metal-48xl": "c7g.metal"} {
		assert.Equal(t, want, availability.Family(name), name)
	}
}

// Whatever records were kept: they are refused, or the ledger of them works and gives them back.
func FuzzFrom(f *testing.F) {
	f.Add([]byte(`[{"scope":"Offering","name":"m5.large","where":"topology.kubernetes.io/zone=a","strikes":1,"since":"2026-01-01T10:00:00Z","until":"2026-01-01T10:03:00Z"}]`), int64(1))
	f.Add([]byte(`[{"scope":"Zone","where":"","strikes":9223372036854775807,"since":"2026-01-01T10:00:00Z","until":"2026-01-01T10:03:00Z"}]`), int64(-600))
	// One more strike than an int can count.
	f.Add([]byte(`[{"scope":"Offering","name":"m5.large","where":"topology.kubernetes.io/zone=a, karpenter.sh/capacity-type=spot","strikes":9223372036854775807,"since":"2026-01-01T10:00:00Z","until":"2026-01-01T10:03:00Z"}]`), int64(181))
	f.Add([]byte(`[{"scope":"Quota","name":"q","where":"impossible()","strikes":1}]`), int64(0))
	f.Fuzz(func(t *testing.T, data []byte, seconds int64) {
		var records []availability.Record
		if json.Unmarshal(data, &records) != nil {
			return
		}
		l, err := availability.From(availability.Policy{}, records)
		if err != nil {
			return
		}
		again, err := availability.From(availability.Policy{}, l.Records())
		require.NoError(t, err)
		assert.Equal(t, l, again)
		now := epoch().Add(time.Duration(seconds%1e6) * time.Second)
		l = l.Refuse(now, refusal("m5.large", "a"))
		_, err = availability.From(availability.Policy{}, l.Records())
		require.NoError(t, err)
		require.LessOrEqual(t, len(l.Active(now)), len(l.Records()))
		for _, r := range l.Records() {
			if r.Since.Equal(now) {
				assert.LessOrEqual(t, r.Until.Sub(now), time.Hour)
			}
		}
		l.Apply(catalogue(), now)
	})
}

func BenchmarkApply(b *testing.B) {
	var l availability.Ledger
	for _, t := range catalogue() {
		l = l.Refuse(at(0), refusal(t.Name, "a"))
	}
	types := slices.Repeat(catalogue(), 50)
	require.False(b, l.Apply(types, at(0))[0].Offerings[0].Available)
	for b.Loop() {
		l.Apply(types, at(0))
	}
}

func ExampleLedger() {
	var l availability.Ledger
	err := &cloudprovider.Error{
		Code:    cloudprovider.ErrInsufficientCapacity,
		Refused: []cloudprovider.Refusal{{Type: "m5.large", Offering: spot("a")}},
	}
	l = l.Learn(err, at(0))
	for _, r := range l.Active(at(0)) {
		fmt.Println(r)
	}
	types := l.Apply(catalogue(), at(0)) // plan again with these
	fmt.Println(types[0].Offerings[0].Available, l.Apply(catalogue(), at(3))[0].Offerings[0].Available)
	// Output:
	// Offering m5.large (karpenter.sh/capacity-type in (spot), topology.kubernetes.io/zone in (a)) until 2026-01-01T10:03:00Z (strike 1)
	// false true
}

func ExampleNew() {
	l := availability.New(availability.Policy{First: time.Minute}).Refuse(at(0), refusal("m5.large", "a"))
	next, _ := l.Next(at(0))
	fmt.Println(next.Sub(at(0)))
	// Output: 1m0s
}

func ExampleFrom() {
	before := availability.New(availability.Policy{}).Refuse(at(0), refusal("m5.large", "a"))
	data, err := json.Marshal(before.Records()) // kept over a restart
	if err != nil {
		fmt.Println(err)
		return
	}
	var records []availability.Record
	if err := json.Unmarshal(data, &records); err != nil {
		fmt.Println(err)
		return
	}
	l, err := availability.From(availability.Policy{}, records)
	fmt.Println(len(l.Active(at(1))), err)
	// Output: 1 <nil>
}

func ExamplePolicy() {
	fmt.Println(availability.Policy{First: time.Minute}.WithDefaults())
	// Output: {1m0s 1h0m0s 1h0m0s 3 3 5m0s}
}

// A negative duration would count refusals as over before they begin.
func TestNegativePolicies(t *testing.T) {
	for path, policy := range map[string]availability.Policy{
		"policy.First": {First: -1}, "policy.Longest": {Longest: -1}, "policy.Memory": {Memory: -1}, "policy.Quota": {Quota: -1},
	} {
		assert.ErrorContains(t, policy.Validate(), path)
		_, err := availability.From(policy, nil)
		require.ErrorContains(t, err, path)
		assert.PanicsWithValue(t, "availability: "+policy.Validate().Error(), func() { availability.New(policy) })
	}
	assert.NoError(t, availability.Policy{FamilyTypes: -1}.Validate(), "never")
}
