package pipeline_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
)

// reservedPool is a pool that may use reservations, and its class with a status.
func reservedPool(status string) string {
	return `apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: c}
spec: {amiSelectorTerms: [{alias: al2023@latest}], role: r, subnetSelectorTerms: [{tags: {a: b}}], securityGroupSelectorTerms: [{tags: {a: b}}], capacityReservationSelectorTerms: [{tags: {a: b}}]}
status: ` + status + `
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: p}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: c}
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [reserved, on-demand]}]
`
}

func readReserved(t *testing.T, market *pipeline.Market, text string) (scheduling.Snapshot, []string) {
	t.Helper()
	m, err := manifests.Parse([]manifests.File{{Name: "in.yaml", Data: []byte(text)}}, pipeline.ReadOptions())
	require.NoError(t, err)
	s, notes, err := pipeline.Snapshot(m, market)
	require.NoError(t, err)
	return s, notes
}

// Exactly those reservations of a class can be bought that are active, have not ended, whose type is for sale in their zone, where the class
// has a subnet, and of which instances are known to be free. Every other one that is not merely full has a note with its id.
func TestReservationsOfClasses(t *testing.T) {
	market, err := pipeline.EC2Market("us-east-1")
	require.NoError(t, err)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	type drawn struct {
		ID                     string `json:"id"`
		InstanceType           string `json:"instanceType"`
		AvailabilityZone       string `json:"availabilityZone"`
		AvailableInstanceCount *int   `json:"availableInstanceCount,omitempty"`
		EndTime                string `json:"endTime,omitempty"`
		State                  string `json:"state,omitempty"`
		ReservationType        string `json:"reservationType,omitempty"`
		Interruptible          bool   `json:"interruptible,omitempty"`
	}
	bought, noted := 0, 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 15))
		one := func(usual string, others ...string) string { // mostly the usual value, so that many reservations can be bought
			if r.IntN(6) > 0 {
				return usual
			}
			return others[r.IntN(len(others))]
		}
		zones := [][]string{nil, {"us-east-1a", "us-east-1b"}}[r.IntN(2)]
		answered := map[string]int{}
		var list []drawn
		want, full := map[string]int{}, map[string]bool{}
		for i := range 1 + r.IntN(6) {
			d := drawn{
				ID: fmt.Sprintf("cr-%d", i), InstanceType: one([]string{"m5.large", "c5.xlarge"}[r.IntN(2)], "m5.larg", "mac1.metal"), AvailabilityZone: one("us-east-1a", "us-east-1b", "us-east-1c", "us-west-2a"),
				EndTime: one("", now.Format(time.RFC3339), "2026-03-01T11:59:59Z", "2026-03-01T13:00:00+01:00", "2026-03-01T12:00:01Z", "2100-01-01T00:00:00Z"),
				State:   one([]string{"", "active"}[r.IntN(2)], "expiring", "of-tomorrow"), ReservationType: one([]string{"", "default", "capacity-block"}[r.IntN(3)], "of-tomorrow"), Interruptible: r.IntN(4) == 0,
			}
			count, known := 0, false
			if r.IntN(5) > 0 {
				n := r.IntN(4)
				d.AvailableInstanceCount, count, known = &n, n, true
			}
			if r.IntN(4) == 0 {
				count, known = r.IntN(4), true // the answer is newer than the status
				answered[d.ID] = count
			}
			ends, _ := time.Parse(time.RFC3339, d.EndTime)
			usable := (d.State == "" || d.State == "active") && d.ReservationType != "of-tomorrow" && (d.EndTime == "" || ends.After(now)) &&
				slices.Contains([]string{"m5.large", "c5.xlarge"}, d.InstanceType) && d.AvailabilityZone != "us-west-2a" && (zones == nil || slices.Contains(zones, d.AvailabilityZone)) && known
			if usable && count > 0 {
				want[d.ID] = count
			}
			full[d.ID] = usable && count == 0
			list = append(list, d)
		}
		m := market.At(now)
		if len(answered) > 0 {
			var parts []string
			for id, n := range answered {
				parts = append(parts, fmt.Sprintf(`{"CapacityReservationId": %q, "State": "active", "AvailableInstanceCount": %d}`, id, n))
			}
			m, err = m.WithAnswer([]byte(`{"CapacityReservations": [` + strings.Join(parts, ",") + `]}`))
			require.NoError(t, err)
		}
		subnets := []map[string]string{}
		for _, z := range zones {
			subnets = append(subnets, map[string]string{"id": "subnet-" + z, "zone": z})
		}
		status, err := json.Marshal(map[string]any{"capacityReservations": list, "subnets": subnets})
		require.NoError(t, err)
		s, notes := readReserved(t, m, reservedPool(string(status)))
		got := map[string]int{}
		for _, typ := range s.Pools[0].Types {
			for _, o := range typ.Offerings {
				id, ok := o.Requirements.Get(instancetypes.LabelReservationID).Single()
				if !ok || !o.Available {
					continue
				}
				i := slices.IndexFunc(list, func(d drawn) bool { return d.ID == id })
				require.GreaterOrEqual(t, i, 0)
				require.Equal(t, []string{list[i].InstanceType, list[i].AvailabilityZone, "reserved"}, []string{typ.Name, (instancetypes.PriceQuery{Offering: o}).Zone(), o.CapacityType()})
				got[id] = o.ReservationCount
			}
		}
		require.Equal(t, want, got, "seed %d: %s", seed, status)
		for _, d := range list {
			said := slices.ContainsFunc(notes, func(n string) bool {
				return strings.HasPrefix(n, "NodePool p: capacity reservation "+d.ID+" of EC2NodeClass c is not used: ")
			})
			require.Equal(t, want[d.ID] == 0 && !full[d.ID], said, "seed %d: %s: %v", seed, d.ID, notes)
			if said {
				noted++
			}
		}
		bought += len(got)
	}
	assert.Greater(t, min(bought, noted), 20, "both happen")
}

// A pool that lists reserved capacity and gets none says why: what is missing, and where it is.
func TestWhyNothingIsReserved(t *testing.T) {
	market, err := pipeline.EC2Market("us-east-1")
	require.NoError(t, err)
	class, pool, _ := strings.Cut(reservedPool("{}"), "---\n")
	const selectors = ", capacityReservationSelectorTerms: [{tags: {a: b}}]"
	for text, want := range map[string]string{
		pool: "the input lacks the node class of the pool",
		strings.Replace(class, selectors, "", 1) + "---\n" + pool: "EC2NodeClass c has no capacityReservationSelectorTerms",
		class + "---\n" + pool: "are not resolved: it has no status.capacityReservations",
		class + "---\n" + strings.Replace(pool, "[reserved, on-demand]", "[on-demand]", 1):                                                                                  "",
		strings.Replace(class, selectors, "", 1) + "---\n" + strings.Replace(pool, "{key: karpenter.sh/capacity-type, operator: In, values: [reserved, on-demand]}", "", 1): "",
	} {
		_, notes := readReserved(t, market, text)
		said := slices.DeleteFunc(notes, func(n string) bool { return !strings.Contains(n, "reserved") })
		if want == "" {
			assert.Empty(t, said)
			continue
		}
		require.Len(t, said, 1)
		assert.Contains(t, said[0], "NodePool p: nothing is bought as karpenter.sh/capacity-type reserved: ")
		assert.Contains(t, said[0], want)
	}
}

// A class is of the region of its reservations if nothing else names one.
func TestRegionOfReservations(t *testing.T) {
	m, err := manifests.Parse([]manifests.File{{Name: "in.yaml", Data: []byte(reservedPool(`{capacityReservations: [{id: cr-1, instanceType: m5.large, availabilityZone: eu-west-1b}]}`))}}, pipeline.ReadOptions())
	require.NoError(t, err)
	region, err := pipeline.RegionOf(m)
	require.NoError(t, err)
	assert.Equal(t, "eu-west-1", region)
}
