package instancetypes_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/instancetypes"
)

// Offerings of one stock share one number. Which one counts could not be known if they differed.
func TestOneNumberForAStock(t *testing.T) {
	offer := func(zone, id string, n int) instancetypes.Offering {
		return instancetypes.Offer(zone, instancetypes.CapacityTypeOnDemand, 1).Stock(id, n)
	}
	capacity := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	for name, c := range map[string]struct {
		a, b []instancetypes.Offering
		want string
	}{
		"equal":         {[]instancetypes.Offering{offer("z1", "x", 2), offer("z2", "x", 2)}, []instancetypes.Offering{offer("z1", "x", 2)}, ""},
		"other ids":     {[]instancetypes.Offering{offer("z1", "x", 2), offer("z2", "y", 3)}, []instancetypes.Offering{offer("z1", "z", 4)}, ""},
		"without an id": {[]instancetypes.Offering{offer("z1", "", 2), offer("z2", "", 3)}, nil, ""},
		"one sold out":  {[]instancetypes.Offering{offer("z1", "x", 2), offer("z2", "x", 0)}, nil, ""},
		"within a type": {[]instancetypes.Offering{offer("z1", "x", 2), offer("z2", "x", 3)}, nil, `instancetypes: [0].offerings[1].reservationCount (a): 3, but [0].offerings[0] has 2 of the same stock or commitment "x": want one number, which they share`},
		"across types":  {[]instancetypes.Offering{offer("z1", "x", 2)}, []instancetypes.Offering{offer("z1", "x", 1)}, `instancetypes: [1].offerings[0].reservationCount (b): 1, but [0].offerings[0] has 2 of the same stock or commitment "x": want one number, which they share`},
	} {
		err := instancetypes.Validate([]instancetypes.InstanceType{instancetypes.New("a", nil, capacity, c.a...), instancetypes.New("b", nil, capacity, c.b...)})
		if c.want == "" {
			require.NoError(t, err, name)
		} else {
			require.EqualError(t, err, c.want, name)
		}
	}
}

// What looks misspelt is an error that names the known word. Words of one's own are legal.
func TestMisspeltCatalogues(t *testing.T) {
	size := func(name corev1.ResourceName) corev1.ResourceList {
		return corev1.ResourceList{name: resource.MustParse("1")}
	}
	for name, c := range map[string]struct {
		capacity           corev1.ResourceList
		zone, capacityType string
		want               string
	}{
		"as it should be":     {size("cpu"), "z", "on-demand", ""},
		"a capacity type":     {size("cpu"), "z", "ondemand", `unknown capacity type "ondemand" (did you mean "on-demand"?)`},
		"a capital":           {size("cpu"), "z", "Spot", `unknown capacity type "Spot" (did you mean "spot"?)`},
		"one of one's own":    {size("cpu"), "z", "lease", ""},
		"no capacity type":    {size("cpu"), "z", "", "want one value that is not empty, or no such label"},
		"no zone":             {size("cpu"), "", "spot", "topology.kubernetes.io/zone in (\"\"): want one value that is not empty"},
		"a resource":          {size("CPU"), "z", "spot", `[0].capacity[CPU] (a): unknown resource (did you mean "cpu"?)`},
		"a device":            {size("acme.com/cpu"), "z", "spot", ""},
		"hugepages of a size": {size("hugepages-2Mi"), "z", "spot", ""},
		"volumes of a driver": {size("attachable-volumes-csi-ebs"), "z", "spot", ""},
	} {
		err := instancetypes.Validate([]instancetypes.InstanceType{instancetypes.New("a", nil, c.capacity, instancetypes.Offer(c.zone, c.capacityType, 1))})
		if c.want == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, c.want, name)
		}
	}
}
