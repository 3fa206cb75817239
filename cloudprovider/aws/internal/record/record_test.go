package record_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/record"
)

func batch(n int) record.Batch {
	b := record.Batch{ID: "b-1", Pool: "general", NodeClass: "default", Requirements: "team in (a)", Labels: map[string]string{"team": "a"}, Identity: "0011", ClassHash: "22", Created: 1767225600}
	for i := range n {
		b.Claims = append(b.Claims, record.Claim{Name: fmt.Sprintf("general-%05d", i*7919%100000), Token: fmt.Sprintf("%08x-8c1f-4b6e-9d2a-%012x", uint32(i)*2654435761, uint64(i)*0x9e3779b97f4a7c15>>16)})
	}
	return b
}

func TestRoundTrip(t *testing.T) {
	for _, n := range []int{1, 2, 100} {
		want := batch(n)
		tags, err := want.Tags()
		require.NoError(t, err)
		got, ok, err := record.Read(tags)
		require.NoError(t, err)
		require.True(t, ok)
		assert.Equal(t, want, got)
		for k, v := range tags {
			assert.LessOrEqual(t, len(v), 256, k)
		}
		t.Logf("%d claims: %d tags", n, len(tags))
	}
	seal := record.Assign([]string{"i-3", "i-1", "i-2", "i-1"})
	assert.Equal(t, record.Seal{"i-1", "i-2", "i-3"}, seal)
	tags, err := seal.Tags()
	require.NoError(t, err)
	got, ok, err := record.ReadSeal(tags)
	require.NoError(t, err)
	require.True(t, ok)
	assert.Equal(t, seal, got)
}

// A hundred claims with the usual random tokens fit beside the user's own tags.
func TestHundredClaimsFit(t *testing.T) {
	tags, err := batch(100).Tags()
	require.NoError(t, err)
	ids := make([]string, 100)
	for i := range ids {
		ids[i] = fmt.Sprintf("i-0%016x", uint64(i+1)*0x9e3779b97f4a7c15)
	}
	seal, err := record.Assign(ids).Tags()
	require.NoError(t, err)
	assert.LessOrEqual(t, len(tags)+len(seal), 38)
}

// Whose a machine is shows also if its tags were all taken off, and the others of its fleet have lost the name of the batch.
func TestReaderOfSpoiledTags(t *testing.T) {
	fleets := map[string]record.Seal{"fleet-1": {"i-1", "i-2"}, "fleet-2": {"i-3", "i-4"}}
	var all []map[string]string
	for fleet, ids := range fleets {
		tags, err := record.Batch{ID: fleet, Claims: []record.Claim{{Name: "a", Token: fleet + "a"}, {Name: "b", Token: fleet + "b"}}}.Tags()
		require.NoError(t, err)
		seal, err := ids.Tags()
		require.NoError(t, err)
		maps.Copy(tags, seal)
		tags[record.KeyFleet] = fleet
		delete(tags, record.KeyBatch)
		all = append(all, tags, map[string]string{record.KeyFleet: fleet})
	}
	r := record.NewReader(all...)
	for _, tags := range all {
		b, ours, err := r.Batch(tags)
		require.NoError(t, err)
		require.True(t, ours)
		got, sealed, err := r.Seal(b, tags)
		require.NoError(t, err)
		assert.True(t, sealed)
		assert.Equal(t, tags[record.KeyFleet]+"a", b.Claims[0].Token)
		assert.Equal(t, fleets[tags[record.KeyFleet]], got)
	}
}

func TestForeignAndBroken(t *testing.T) {
	_, ok, err := record.Read(map[string]string{"Name": "web"})
	require.NoError(t, err)
	assert.False(t, ok)
	_, ok, err = record.ReadSeal(nil)
	require.NoError(t, err)
	assert.False(t, ok)

	whole, err := batch(20).Tags()
	require.NoError(t, err)
	for name, change := range map[string]func(map[string]string){
		"no claims":  func(m map[string]string) { maps.DeleteFunc(m, func(k, _ string) bool { return k != record.KeyBatch }) },
		"no base64":  func(m map[string]string) { m["joinery/claims-00"] = "!" + m["joinery/claims-00"][1:] },
		"cut off":    func(m map[string]string) { delete(m, "joinery/claims-01") },
		"other JSON": func(m map[string]string) { m["joinery/claims-00"] = "" },
	} {
		tags := maps.Clone(whole)
		change(tags)
		_, ok, err := record.Read(tags)
		assert.True(t, ok, name)
		require.Error(t, err, name)
	}
}

func FuzzRead(f *testing.F) {
	for _, n := range []int{1, 5} {
		tags, err := batch(n).Tags()
		require.NoError(f, err)
		f.Add(tags[record.KeyBatch], tags["joinery/claims-00"], tags["joinery/claims-01"])
	}
	f.Add("", "AAAA", "")
	f.Add("b", "S0xOVgIA", "")
	f.Fuzz(func(t *testing.T, id, first, second string) {
		tags := map[string]string{record.KeyBatch: id, "joinery/claims-00": first, "joinery/claims-01": second}
		got, ok, err := record.Read(tags)
		require.True(t, ok)
		if err != nil {
			return
		}
		require.NotEmpty(t, got.Claims)
		again, err := got.Tags()
		require.NoError(t, err)
		same, _, err := record.Read(again)
		require.NoError(t, err)
		require.Equal(t, got.Claims, same.Claims)
	})
}

func ExampleBatch() {
	tags, err := record.Batch{ID: "b-1", Claims: []record.Claim{{Name: "node-1", Token: "t-1"}, {Name: "node-2", Token: "t-2"}}}.Tags()
	if err != nil {
		fmt.Println(err)
		return
	}
	back, ok, err := record.Read(tags)
	fmt.Println(back.ID, back.Claims[1].Name, ok, err)
	// Output: b-1 node-2 true <nil>
}

func ExampleAssign() {
	fmt.Println(record.Assign([]string{"i-b", "i-a"}))
	// Output: [i-a i-b]
}
