package kwok_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/kwok"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
)

const sample = `[
  {"name": "c-4x-amd64", "architecture": "amd64", "operatingSystems": ["linux"],
   "resources": {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "20Gi"},
   "offerings": [
     {"Price": 0.04, "Available": true, "Requirements": [
       {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
       {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-a"]}]},
     {"Price": 0.1, "Requirements": [
       {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
       {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-b"]}]}]},
  {"name": "m5.large", "architecture": "arm64", "operatingSystems": ["linux", "windows"],
   "resources": {"cpu": 2, "memory": "8Gi", "pods": "29"},
   "overhead": {"cpu": "70m", "memory": "1Gi"},
   "requirements": [{"key": "example.com/rack", "operator": "In", "values": ["r1", "r2"]}],
   "offerings": [{"price": 0.096, "available": false, "requirements": null}]}
]`

func TestRead(t *testing.T) {
	types, err := kwok.Read([]byte(sample))
	require.NoError(t, err)
	require.Len(t, types, 2)

	c := types[0]
	assert.Equal(t, map[string]string{
		"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "node.kubernetes.io/instance-type": "c-4x-amd64",
		kwok.LabelSize: "4", kwok.LabelFamily: "c", kwok.LabelCPU: "4", kwok.LabelMemory: "8Gi",
	}, c.Requirements.Labels())
	zones, _ := c.Requirements.Get(corev1.LabelTopologyZone).Values()
	assert.Equal(t, []string{"zone-a", "zone-b"}, zones)
	assert.True(t, c.Offerings[1].Available, "left out means available")
	assert.Equal(t, resources.Quantity("pods", 110), c.Allocatable()["pods"])
	assert.Equal(t, resources.Quantity("cpu", 4000), c.Allocatable()["cpu"])

	m := types[1]
	assert.Equal(t, "large", m.Requirements.Labels()[kwok.LabelSize])
	racks, _ := m.Requirements.Get("example.com/rack").Values()
	assert.Equal(t, []string{"r1", "r2"}, racks)
	assert.False(t, m.Offerings[0].Available)
	assert.Equal(t, resources.Quantity("cpu", 1930), m.Allocatable()["cpu"])
	assert.Equal(t, resources.Quantity("memory", 7<<30), m.Allocatable()["memory"])
	assert.True(t, kwok.WellKnown(types).Contains("example.com/rack"))
}

// A type may be anywhere as soon as one of its offerings does not say where it is.
func TestPlacesNeedEveryOffering(t *testing.T) {
	types, err := kwok.Read([]byte(`[{"name": "a", "offerings": [
	  {"Price": 1, "Requirements": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-a"]}]}, {"Price": 2}]}]`))
	require.NoError(t, err)
	assert.False(t, types[0].Requirements.Has(corev1.LabelTopologyZone), types[0].Requirements.String())
}

// Karpenter has a reservation without room as one that is available and has a capacity of 0.
func TestAFullReservation(t *testing.T) {
	read := func(offering string) instancetypes.Offering {
		types, err := kwok.Read([]byte(`[{"name": "a", "architecture": "amd64", "resources": {"cpu": "4", "memory": "8Gi"}, "offerings": [{"Price": 1, "Available": true, ` + offering + `}]}]`))
		require.NoError(t, err)
		return types[0].Offerings[0]
	}
	at := func(capacity string) string {
		return `"Requirements": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z"]}, {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["` + capacity + `"]}]`
	}
	assert.False(t, read(`"ReservationCapacity": 0, `+at("reserved")).Available)
	assert.True(t, read(`"ReservationCapacity": 2, `+at("reserved")).Available)
	assert.True(t, read(at("reserved")).Available, "nothing is said of how many")
	assert.True(t, read(`"ReservationCapacity": 0, `+at("on-demand")).Available, "Karpenter writes it for all")
	full := read(`"ReservationCapacity": 0, ` + at("reserved"))
	assert.True(t, full.Full)
	data, err := kwok.Write([]instancetypes.InstanceType{instancetypes.New("a", nil, nil, full)})
	require.NoError(t, err)
	again, err := kwok.Read(data)
	require.NoError(t, err)
	assert.True(t, again[0].Offerings[0].Full && !again[0].Offerings[0].Available, string(data))
}

func TestRoundTrip(t *testing.T) {
	types, err := kwok.Read([]byte(sample))
	require.NoError(t, err)
	first, err := kwok.Write(types)
	require.NoError(t, err)
	again, err := kwok.Read(first)
	require.NoError(t, err, string(first))
	second, err := kwok.Write(again)
	require.NoError(t, err)
	assert.Equal(t, string(first), string(second))
	for i := range types {
		assert.True(t, types[i].Requirements.Equal(again[i].Requirements), "%s\n%s", types[i].Requirements, again[i].Requirements)
	}
}

func TestReadRefuses(t *testing.T) {
	entry := func(rest string) string {
		return `[{"name":"a","resources":{"cpu":"1"},"offerings":[{"Price":1,"Requirements":[]}]` + rest + `}]`
	}
	offer := func(o string) string { return `[{"name":"a","resources":{"cpu":"1"},"offerings":[` + o + `]}]` }
	for name, c := range map[string]struct{ in, want string }{
		"nothing":            {"", "empty"},
		"not JSON":           {"[\n{,}]", "line 2"},
		"an object":          {"{}", "want a list of instance types"},
		"NaN":                {offer(`{"Price": NaN}`), "line 1"},
		"two documents":      {"[][]", "text after the end"},
		"a number":           {"[1]", "[0]: want an object, got 1"},
		"no name":            {`[{"resources":{}}]`, "name: empty"},
		"unknown field":      {entry(`,"resource":{}`), `[0].resource: no such field (did you mean "resources"?)`},
		"unknown in offer":   {offer(`{"Price":1,"Avaylable":true}`), `offerings[0].Avaylable (a): no such field (did you mean "Available"?)`},
		"field twice":        {offer(`{"Price":1,"price":2}`), "twice"},
		"no price":           {offer(`{}`), "offerings[0].Price (a): missing"},
		"text price":         {offer(`{"Price":"1"}`), `want a finite number of US dollars per hour, got "1"`},
		"infinite price":     {offer(`{"Price":1e999}`), "want a finite number"},
		"negative price":     {offer(`{"Price":-0.1}`), "want no negative price"},
		"absurd price":       {offer(`{"Price":1e300}`), "no machine costs that much"},
		"bad quantity":       {`[{"name":"a","resources":{"cpu":"four"}}]`, `[0].resources[cpu] (a): want a quantity`},
		"negative quantity":  {`[{"name":"a","resources":{"cpu":"-4"}}]`, "want no negative quantity"},
		"absurd quantity":    {`[{"name":"a","resources":{"memory":"8Ei"}}]`, "no machine is that large"},
		"duplicate name":     {`[{"name":"a"},{"name":"a"}]`, "is the name of [0], too"},
		"duplicate offering": {offer(`{"Price":1},{"Price":2}`), "the same offering as offerings[0]"},
		"bad operator":       {offer(`{"Price":1,"Requirements":[{"key":"a","operator":"in","values":["x"]}]}`), `did you mean "In"?`},
		"bad requirement":    {offer(`{"Price":1,"Requirements":[{"key":"a","operators":"In"}]}`), `did you mean "operator"?`},
		"contradiction":      {`[{"name":"a","requirements":[{"key":"node.kubernetes.io/instance-type","operator":"In","values":["b"]}]}]`, "nothing in common"},
		"negative count":     {offer(`{"Price":1,"ReservationCapacity":-1}`), "want 0 for no limit"},
		"no system":          {entry(`,"operatingSystems":[]`), "operatingSystems (a): empty"},
	} {
		types, err := kwok.Read([]byte(c.in))
		if assert.Error(t, err, name) {
			assert.Contains(t, err.Error(), c.want, name)
		}
		assert.Nil(t, types, name)
	}
}

func TestReadNamesEveryFault(t *testing.T) {
	_, err := kwok.Read([]byte(`[{"name":"a","nam":"b","resources":{"cpu":"x","memory":"y"},"offerings":[{"Price":true}]}]`))
	require.Error(t, err)
	for _, want := range []string{".nam", "[cpu]", "[memory]", ".Price"} {
		assert.ErrorContains(t, err, want)
	}
}

// Any bytes give an error, or a catalogue that keeps the invariants and survives a round trip.
func FuzzRead(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte(`[{"name":"a","resources":{"cpu":"-1"},"offerings":[{"Price":1e999}]}]`))
	f.Add([]byte(`[{"name":"a.b-c","requirements":[{"key":"k","operator":"Gt","values":["3"]}]}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		types, err := kwok.Read(data)
		if err != nil {
			require.Nil(t, types)
			return
		}
		require.NoError(t, instancetypes.Validate(types))
		for _, it := range types {
			for _, s := range it.Breakdown() {
				require.GreaterOrEqual(t, s.Allocatable, int64(0))
				require.LessOrEqual(t, s.Allocatable, s.Capacity)
			}
		}
		if out, err := kwok.Write(types); err == nil {
			_, err = kwok.Read(out)
			require.NoError(t, err, string(out))
		}
	})
}

func ExampleRead() {
	types, err := kwok.Read([]byte(`[{"name": "c-4x", "architecture": "amd64", "resources": {"cpu": "4", "memory": "8Gi"},
	  "offerings": [{"Price": 0.1, "Requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}]}]}]`))
	if err != nil {
		fmt.Println(err)
		return
	}
	price, _ := types[0].LeastPrice(requirements.Set{})
	fmt.Println(types[0].Name, price)

	_, err = kwok.Read([]byte(`[{"name": "c-4x", "resorces": {}}]`))
	fmt.Println(err)
	// Output:
	// c-4x 0.1
	// kwok: [0].resorces: no such field (did you mean "resources"?)
}

func ExampleWrite() {
	data, err := kwok.Write([]instancetypes.InstanceType{{
		Name:         "c-4x",
		Requirements: requirements.MustOf(requirements.In("kubernetes.io/arch", "amd64"), requirements.In("kubernetes.io/os", "linux")),
		Capacity:     corev1.ResourceList{"cpu": resources.Quantity("cpu", 4000)},
	}})
	fmt.Println(string(data), err)
	// Output:
	// [
	//   {
	//     "name": "c-4x",
	//     "architecture": "amd64",
	//     "operatingSystems": [
	//       "linux"
	//     ],
	//     "resources": {
	//       "cpu": "4"
	//     },
	//     "offerings": []
	//   }
	// ]
	//  <nil>
}

func ExampleWellKnown() {
	types, err := kwok.Read([]byte(`[{"name": "c-4x", "requirements": [{"key": "example.com/rack", "operator": "In", "values": ["r1"]}]}]`))
	fmt.Println(kwok.WellKnown(types).Contains("example.com/rack"), err)
	// Output: true <nil>
}
