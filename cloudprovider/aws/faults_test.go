package aws_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
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

// launches is how many the fault run makes. JOINERY_LONG divides the full count.
func launches() int {
	if parts, err := strconv.Atoi(os.Getenv("JOINERY_LONG")); err == nil && parts > 0 {
		return 10_000 / parts
	}
	if testing.Short() {
		return 150
	}
	return 300
}

// mishaps go wrong in a few of a hundred calls of each action; which, depends only on the seed and the count of the call.
func mishaps(seed uint64) func(awstest.Call) awstest.Fault {
	return func(c awstest.Call) awstest.Fault {
		h := fnv.New64a()
		_, _ = fmt.Fprintf(h, "%d %s %d", seed, c.Action, c.N)
		switch r := rand.New(rand.NewPCG(seed, h.Sum64())).IntN(100); {
		case r < 4:
			return awstest.Fault{Lost: true}
		case r < 6:
			return awstest.Fault{Dropped: true}
		case r < 11:
			return awstest.Fault{Code: "RequestLimitExceeded", Message: "Request limit exceeded."}
		case r < 13:
			return awstest.Fault{Code: "InternalError", Message: "An internal error has occurred"}
		case r < 15:
			return awstest.Fault{Entry: "InvalidParameterValue", Message: "Value (x) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name"}
		case r < 16:
			return awstest.Fault{Entry: "RequestLimitExceeded", Message: "Request limit exceeded."}
		case r < 17:
			return awstest.Fault{Entry: "InternalError", Message: "An internal error has occurred"}
		case r < 50:
			return awstest.Fault{Slow: time.Duration(r) * 5 * time.Millisecond}
		default:
			return awstest.Fault{}
		}
	}
}

// outcome is what the caller of a claim knows in the end.
type outcome struct {
	id      string // of the instance, if there was one
	deleted bool
	tries   int
}

// faultSeed decides what goes wrong in the fault run.
const faultSeed = 7

// world is a fault run: a cloud in trouble, and callers that keep their promises.
type world struct {
	*fixture
	t        *testing.T
	mu       sync.Mutex
	provider *aws.Provider
	outcomes map[string]*outcome // by token
	restarts int

	have, refused, deleted int // what the harvests counted
	stripped, bare         int // machines whose tags were taken off
}

// restart replaces the provider by one that remembers nothing. No call may be under way.
func (w *world) restart(ctx context.Context) {
	w.t.Helper()
	o := w.options()
	o.Undecided, o.Queue = nil, ""
	p, err := aws.New(ctx, o)
	require.NoError(w.t, err)
	w.provider = p
	w.restarts++
	time.Sleep(31 * time.Second)
}

// strip takes tags off some machines, as people and policies do: the batch's name, or, of one that its caller knows and that others of the fleet tell of,
// all that we have written.
func (w *world) strip(rng *rand.Rand) {
	truth := w.cloud.Truth()
	fleets, told := map[string]int{}, map[string]bool{}
	for _, m := range truth {
		if m.Tags["joinery/claims-00"] != "" {
			fleets[m.Fleet]++
		}
	}
	for _, out := range w.outcomes {
		told[ec2ID(out.id)] = true
	}
	for _, m := range truth {
		if rng.IntN(20) > 0 || m.Tags["joinery/claims-00"] == "" {
			continue
		}
		off := map[string]string{"joinery/batch": ""}
		if fleets[m.Fleet] > 1 && told[m.ID] {
			fleets[m.Fleet]--
			w.bare++
			for key := range m.Tags {
				if strings.HasPrefix(key, "joinery/claims-") || strings.HasPrefix(key, "joinery/seal-") {
					off[key] = ""
				}
			}
		}
		w.stripped++
		w.cloud.Retag(m.ID, off)
	}
}

// create asks until the answer is known; false = the world stopped before.
func (w *world) create(ctx context.Context, claim cloudprovider.NodeClaim, rng *rand.Rand) bool {
	out := w.outcomes[claim.Token]
	for out.tries++; ; out.tries++ {
		call, end := context.WithTimeout(ctx, time.Hour)
		if rng.IntN(10) == 0 {
			call, end = context.WithTimeout(ctx, time.Duration(rng.IntN(1000))*time.Millisecond) // somewhere in the middle
		}
		launch, err := w.provider.Create(call, claim)
		end()
		if ctx.Err() != nil && err != nil {
			return false
		}
		if err == nil {
			out.id = launch.ID
			return true
		}
		if advice := cloudprovider.Advise(err); advice.Retry != cloudprovider.RetrySame {
			require.True(w.t, errors.Is(err, cloudprovider.ErrInsufficientCapacity) || errors.Is(err, cloudprovider.ErrQuota), "claim %q: %v", claim.Name, err)
			return true
		}
		time.Sleep(4 * time.Second)
		if !assert.Less(w.t, out.tries, 3000, "claim %q: no answer in the end: %v", claim.Name, err) {
			return true
		}
	}
}

// delete asks until the instance is gone.
func (w *world) delete(ctx context.Context, id string) bool {
	for range 3000 {
		err := w.provider.Delete(ctx, id)
		switch {
		case errors.Is(err, cloudprovider.ErrNotFound):
			return true
		case ctx.Err() != nil:
			return false
		case err != nil && cloudprovider.Advise(err).Retry == cloudprovider.RetryNever:
			w.t.Errorf("delete %q: %v", id, err)
			return true
		}
		time.Sleep(5 * time.Second)
	}
	w.t.Errorf("delete %q never ended", id)
	return true
}

// harvest looks at everything while nothing goes wrong: each claim that is not open has what its caller was told, each open one has one instance at
// most, and nothing else runs. Then it ends what was looked at, and lets so much time pass that EC2 knows nothing of it any more, nor the
// client tokens that it was launched with.
func (w *world) harvest(ctx context.Context, done, open []cloudprovider.NodeClaim) {
	w.cloud.SetFault(nil)
	for range 2 { // machines without an owner are ended in the second reading that shows them
		time.Sleep(time.Minute)
		_, err := w.provider.Maintain(ctx, 24*time.Hour)
		require.NoError(w.t, err)
	}
	listed, err := w.provider.List(ctx)
	require.NoError(w.t, err)
	truth := len(w.cloud.Truth())
	byToken := map[string][]string{}
	for _, i := range listed {
		if i.State != cloudprovider.Terminating {
			byToken[i.Token] = append(byToken[i.Token], i.ID)
		}
	}
	running := 0
	for _, claim := range open {
		assert.LessOrEqual(w.t, len(byToken[claim.Token]), 1, "claim %q is asked for again", claim.Name)
		running += len(byToken[claim.Token])
	}
	for _, claim := range done {
		switch out := w.outcomes[claim.Token]; {
		case out.id == "":
			w.refused++
			assert.Empty(w.t, byToken[claim.Token], "claim %q was refused", claim.Name)
		case out.deleted:
			w.deleted++
			assert.Empty(w.t, byToken[claim.Token], "the instance of claim %q was deleted", claim.Name)
		default:
			w.have++
			running++
			assert.Equal(w.t, []string{out.id}, byToken[claim.Token], "claim %q", claim.Name)
			require.NoError(w.t, w.provider.Delete(ctx, out.id))
		}
		delete(w.outcomes, claim.Token)
	}
	assert.Equal(w.t, running, truth, "machines that run, whatever is listed")
	time.Sleep(2 * time.Hour)
	w.cloud.SetFault(mishaps(faultSeed))
}

// No instance without a claim, no claim with two instances, no launch template left: whatever goes wrong with the calls, whenever callers give
// up, and however often the provider starts anew without any memory.
func TestFaultRun(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		const workers, between = 24, 1000
		ctx := t.Context()
		w := &world{
			fixture: newFixture(t, awstest.Config{SilentReplays: true, Lag: 10 * time.Second, Boot: 20 * time.Second, Shutdown: 20 * time.Second, Page: 200, ProfileLag: 12 * time.Second}),
			t:       t, outcomes: map[string]*outcome{},
		}
		w.restart(ctx)
		types, err := w.provider.InstanceTypes(ctx, pool())
		require.NoError(t, err)
		ask := requirements.MustOf(requirements.In("karpenter.k8s.aws/instance-category", "m", "c"))
		all := cloudprovider.CandidatesOf(types, ask, nil, requirements.Keys{})
		require.Greater(t, len(all), 20)
		rng := rand.New(rand.NewPCG(faultSeed, 0))
		var shapes [][]cloudprovider.Candidate
		for range 5 {
			shape := slices.Clone(all)
			rng.Shuffle(len(shape), func(i, j int) { shape[i], shape[j] = shape[j], shape[i] })
			shapes = append(shapes, shape[:12])
		}
		// Some offerings run out, so that fleets fall through, are filled in part, or find nothing.
		for i, c := range all {
			if i%2 == 0 {
				w.cloud.SetCapacity(c.Type, single(c, "topology.kubernetes.io/zone"), single(c, "karpenter.sh/capacity-type"), i%9)
			}
		}
		shapes[0] = shapes[0][:4]
		for _, c := range shapes[0] {
			w.cloud.SetCapacity(c.Type, single(c, "topology.kubernetes.io/zone"), single(c, "karpenter.sh/capacity-type"), 2)
		}
		w.cloud.SetFault(mishaps(faultSeed))
		total := launches()
		var claims []cloudprovider.NodeClaim
		for i := range total {
			name := fmt.Sprintf("claim-%d", i)
			claims = append(claims, cloudprovider.NodeClaim{Name: name, Token: name + "-token", Pool: "web", Candidates: shapes[rng.IntN(len(shapes))]})
			w.outcomes[name+"-token"] = &outcome{}
		}
		most := 0
		var done []cloudprovider.NodeClaim // since the last harvest
		for todo := claims; len(todo) > 0; {
			// A life of the provider: workers take claims until it is stopped in the middle of whatever they do.
			life, stop := context.WithCancel(ctx)
			take := make(chan cloudprovider.NodeClaim)
			var undone []cloudprovider.NodeClaim
			var group sync.WaitGroup
			for n := range workers {
				group.Go(func() {
					own := rand.New(rand.NewPCG(faultSeed, uint64(w.restarts*100+n)))
					for claim := range take {
						known := w.create(life, claim, own)
						if out := w.outcomes[claim.Token]; known && out.id != "" && own.IntN(100) < 60 {
							out.deleted = true // from now on it has to go
							known = w.delete(life, out.id)
						}
						w.mu.Lock()
						if known {
							done = append(done, claim)
						} else {
							undone = append(undone, claim)
						}
						w.mu.Unlock()
					}
				})
			}
			chunk := todo[:min(len(todo), 100+rng.IntN(200))]
			for i, claim := range chunk {
				if len(todo) > 100 && i == len(chunk)-workers/2 {
					pause := time.Duration(rng.IntN(3)) * time.Millisecond
					go func() { time.Sleep(pause); stop() }()
				}
				take <- claim
			}
			close(take)
			group.Wait()
			stop()
			most = max(most, len(w.cloud.Templates()))
			todo = slices.Concat(undone, todo[len(chunk):])
			w.restart(ctx)
			w.strip(rng)
			// Those whose deletion was cut off are deleted by the next life.
			for _, claim := range undone {
				if out := w.outcomes[claim.Token]; out.deleted {
					require.True(t, w.delete(ctx, out.id))
					todo = slices.DeleteFunc(todo, func(c cloudprovider.NodeClaim) bool { return c.Token == claim.Token })
					done = append(done, claim)
				}
			}
			if len(done) >= between || len(todo) == 0 {
				w.harvest(ctx, done, todo)
				done = nil
			}
		}

		t.Logf("%d launches in %d lives of the provider: %d stay, %d deleted, %d refused; tags taken off %d machines, all of them off %d; %d calls to EC2, at most %d templates",
			total, w.restarts, w.have, w.deleted, w.refused, w.stripped, w.bare, w.cloud.Calls("EC2."), most)
		assert.Positive(t, w.stripped)
		assert.Equal(t, total, w.have+w.deleted+w.refused, "every claim was looked at")
		assert.Greater(t, w.have, total/10)
		assert.Greater(t, w.refused, 0)
		assert.LessOrEqual(t, most, 8, "two capacity types, two images")

		w.cloud.SetFault(nil)
		_, err = w.provider.Maintain(ctx, 0)
		require.NoError(t, err)
		assert.Empty(t, w.cloud.Templates())
		assert.Empty(t, w.cloud.Truth())
	})
}
