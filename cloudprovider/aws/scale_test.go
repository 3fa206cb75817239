package aws_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest"
	"github.com/joinery-sdk/joinery/requirements"
)

// token looks like a UUID, which does not compress.
func token(rng *rand.Rand) string {
	return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", rng.Uint32(), rng.Uint32()>>16, rng.Uint32()>>20, rng.Uint32()>>20, rng.Uint64()>>16)
}

// A thousand callers at once, in real time, against the rates that AWS publishes: the calls are few, and none is refused for being one too many.
func TestThousandCreatesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const creates, shapes = 1000, 10
		cloud, err := awstest.New(awstest.Config{})
		require.NoError(t, err)
		reach := cloud.API()
		p, err := aws.New(t.Context(), aws.Options{
			Cluster: "harbour", Classes: aws.FixedClasses{class()}, Region: reach.Region, Credentials: reach.Credentials,
			HTTPClient: reach.HTTPClient, Buckets: reach.Buckets, Undecided: aws.NoHistory,
		})
		require.NoError(t, err)
		types, err := p.InstanceTypes(t.Context(), pool())
		require.NoError(t, err)
		candidates := cloudprovider.CandidatesOf(types, requirements.MustOf(requirements.In("karpenter.sh/capacity-type", "spot")), nil, requirements.Keys{})
		rng := rand.New(rand.NewPCG(1, 2))
		var group sync.WaitGroup
		ids := make([]string, creates)
		for i := range creates {
			claim := cloudprovider.NodeClaim{
				Name: fmt.Sprintf("web-%d", i), Token: token(rng), Pool: "web", Candidates: candidates[i%shapes : i%shapes+8],
			}
			group.Go(func() {
				launch, err := p.Create(t.Context(), claim)
				if assert.NoError(t, err) {
					ids[i] = launch.ID
				}
			})
		}
		group.Wait()
		slices.Sort(ids)
		assert.Len(t, slices.Compact(ids), creates)
		assert.Len(t, cloud.Truth(), creates)
		assert.LessOrEqual(t, cloud.Calls("EC2."), creates/20, "%v", cloud.CallsByAction())
		assert.Zero(t, cloud.Throttled())
		t.Logf("%d calls to EC2 for %d creates: %v", cloud.Calls("EC2."), creates, cloud.CallsByAction())
	})
}

// A provider that starts anew among five thousand machines reads them once, however many ask, page by page, and then answers for all of their tokens.
func TestRestartAmongMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const askers = 200
		nodes := 1500
		if testing.Short() {
			nodes = 1000
		}
		if os.Getenv("JOINERY_LONG") != "" {
			nodes = 5000
		}
		f := newFixture(t, awstest.Config{Lag: 10 * time.Second})
		for _, subnet := range []string{"subnet-00", "subnet-10", "subnet-20"} {
			f.cloud.SetFreeAddresses(subnet, 1_000_000)
		}
		p := f.provider(t)
		types, err := p.InstanceTypes(t.Context(), pool())
		require.NoError(t, err)
		candidates := cloudprovider.CandidatesOf(types, requirements.MustOf(requirements.In("karpenter.sh/capacity-type", "spot")), nil, requirements.Keys{})
		rng := rand.New(rand.NewPCG(5, 6))
		var claims []cloudprovider.NodeClaim
		for i := range nodes {
			claims = append(claims, cloudprovider.NodeClaim{Name: fmt.Sprintf("web-%d", i), Token: token(rng), Pool: "web", Candidates: candidates[i%10 : i%10+8]})
		}
		ids := map[string]string{}
		for chunk := range slices.Chunk(claims, 500) {
			for i, r := range p.CreateMany(t.Context(), chunk) {
				require.NoError(t, r.Err)
				ids[chunk[i].Token] = r.Launch.ID
			}
			time.Sleep(10 * time.Second)
		}
		time.Sleep(time.Hour)
		next := f.provider(t, func(o *aws.Options) { o.Undecided = nil })
		time.Sleep(31 * time.Second)
		before, fleets := f.cloud.Calls("EC2.DescribeInstances"), f.cloud.Calls("EC2.CreateFleet")
		start := time.Now()
		var group sync.WaitGroup
		for i := range askers {
			claim := claims[i*nodes/askers]
			group.Go(func() {
				launch, err := next.Create(t.Context(), claim)
				assert.NoError(t, err)
				assert.Equal(t, ids[claim.Token], launch.ID)
			})
		}
		group.Wait()
		t.Logf("%d nodes known again after %s and %d calls", nodes, time.Since(start).Round(time.Millisecond), f.cloud.Calls("EC2.DescribeInstances")-before)
		assert.LessOrEqual(t, f.cloud.Calls("EC2.DescribeInstances")-before, nodes/1000+1)
		for i, r := range next.CreateMany(t.Context(), claims) {
			require.NoError(t, r.Err)
			require.Equal(t, ids[claims[i].Token], r.Launch.ID)
		}
		assert.Equal(t, fleets, f.cloud.Calls("EC2.CreateFleet"))
		assert.Len(t, f.cloud.Truth(), nodes)
	})
}

// What a provider remembers has an end.
func TestHeapStaysLevel(t *testing.T) {
	if testing.Short() {
		t.Skip("repeats itself")
	}
	synctest.Test(t, func(t *testing.T) {
		cycles := 4_000
		if parts, err := strconv.Atoi(os.Getenv("JOINERY_LONG")); err == nil {
			cycles = 100_000 / parts
		}
		const each = 100
		f := newFixture(t, awstest.Config{})
		p := f.provider(t)
		types, err := p.InstanceTypes(t.Context(), pool())
		require.NoError(t, err)
		candidates := cloudprovider.CandidatesOf(types, requirements.MustOf(requirements.In("karpenter.sh/capacity-type", "spot")), nil, requirements.Keys{})[:6]
		rng := rand.New(rand.NewPCG(3, 4))
		// A tenth of the run lasts longer than any token is remembered.
		pause := 27 * time.Hour / time.Duration(cycles/10/each)
		heap := func() uint64 {
			runtime.GC()
			runtime.GC()
			var s runtime.MemStats
			runtime.ReadMemStats(&s)
			return s.HeapAlloc
		}
		var early uint64
		for done := 0; done < cycles; done += each {
			if done == cycles/10 {
				early = heap()
			}
			var claims []cloudprovider.NodeClaim
			for i := range each {
				claims = append(claims, cloudprovider.NodeClaim{Name: fmt.Sprintf("web-%d", done+i), Token: token(rng), Pool: "web", Candidates: candidates})
			}
			var group sync.WaitGroup
			for _, r := range p.CreateMany(t.Context(), claims) {
				require.NoError(t, r.Err)
				group.Go(func() { assert.NoError(t, p.Delete(t.Context(), r.Launch.ID)) })
			}
			group.Wait()
			time.Sleep(pause)
			_, err := p.List(t.Context())
			require.NoError(t, err)
		}
		late := heap()
		require.Empty(t, f.cloud.Truth())
		ratio := float64(late) / float64(early)
		t.Logf("%d cycles: %.2f MB at a tenth, %.2f MB at the end, %.3f times", cycles, float64(early)/1e6, float64(late)/1e6, ratio)
		assert.LessOrEqual(t, ratio, 1.05)
		runtime.KeepAlive(p)
	})
}
