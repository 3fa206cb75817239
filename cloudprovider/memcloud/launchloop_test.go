package memcloud_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/availability"
	"github.com/joinery-sdk/joinery/cloudprovider/cloudtest"
	"github.com/joinery-sdk/joinery/cloudprovider/lifecycle"
	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// loop is a controller that keeps a number of nodes. What is in written survives its restarts, all else does not.
type loop struct {
	cloud    *memcloud.Cloud
	provider cloudprovider.Provider
	chance   *rand.Rand
	nodes    int

	written map[string]*written // by the claim's name
	leaving map[string]bool     // ids that are being deleted
	serial  int

	ledger availability.Ledger // lost in a restart

	launched                 map[string]bool // ids that Create returned
	restarts, doubles        int
	decisions                map[lifecycle.Verdict]int
	failures                 map[error]int
	unknown, refusedOnTheWay int
}

// written is one claim as an API server keeps it.
type written struct {
	claim    cloudprovider.NodeClaim
	created  time.Time
	instance string
	launched time.Time
}

func newLoop(cloud *memcloud.Cloud, provider cloudprovider.Provider, seed uint64, nodes int) *loop {
	return &loop{
		cloud: cloud, provider: provider, chance: rand.New(rand.NewPCG(seed, 1)), nodes: nodes,
		written: map[string]*written{}, leaving: map[string]bool{}, launched: map[string]bool{},
		decisions: map[lifecycle.Verdict]int{}, failures: map[error]int{},
	}
}

func (l *loop) now() time.Time { return l.cloud.Clock().Now() }

// restart forgets what is not written, with some probability.
func (l *loop) restart(probability float64) bool {
	if l.chance.Float64() >= probability {
		return false
	}
	l.restarts++
	l.ledger = availability.Ledger{}
	return true
}

// plan writes a claim for what can be had now.
func (l *loop) plan(ctx context.Context) {
	types, err := l.provider.InstanceTypes(ctx, nodepool.NodePool{})
	if err != nil {
		return
	}
	candidates := cloudprovider.CandidatesOf(l.ledger.Apply(types, l.now()), requirements.Set{}, nil, requirements.Keys{})
	if len(candidates) == 0 {
		return // until something is no longer withheld
	}
	l.serial++
	name := fmt.Sprintf("claim-%06d", l.serial)
	l.written[name] = &written{
		created: l.now(),
		claim:   cloudprovider.NodeClaim{Name: name, Token: name + "-token", Pool: "loop", Candidates: candidates[:min(3, len(candidates))]},
	}
}

// launch tries to get the claim its instance.
func (l *loop) launch(ctx context.Context, name string) {
	w := l.written[name]
	launch, err := l.provider.Create(ctx, w.claim)
	if l.restart(0.02) {
		return // whatever the answer was
	}
	if err == nil {
		l.refusedOnTheWay += len(launch.Refused)
		l.launched[launch.ID] = true
		l.ledger = l.ledger.Launched(launch, l.now())
		w.instance, w.launched = launch.ID, l.now()
		return
	}
	for _, code := range cloudprovider.Codes() {
		if errors.Is(err, code) {
			l.failures[code]++
		}
	}
	advice := cloudprovider.Advise(err)
	if advice.Unknown {
		l.unknown++
	}
	switch advice.Retry {
	case cloudprovider.RetryElsewhere:
		l.ledger = l.ledger.Learn(err, l.now())
		delete(l.written, name) // another plan, another claim
	case cloudprovider.RetryNever:
		delete(l.written, name)
	case cloudprovider.RetrySame:
	}
}

// collect compares the cloud with what is written and gives back what it must.
func (l *loop) collect(ctx context.Context) (rest int) {
	instances, err := l.provider.List(ctx)
	if err != nil {
		return 1
	}
	var claims []lifecycle.Claim
	for _, name := range slices.Sorted(maps.Keys(l.written)) {
		w := l.written[name]
		// These nodes join at once.
		claims = append(claims, lifecycle.Claim{Name: name, Token: w.claim.Token, Created: w.created, Instance: w.instance, Launched: w.launched, Registered: w.launched})
	}
	decisions, _ := lifecycle.Review(claims, instances, lifecycle.Timeouts{Lag: 2 * time.Minute}, l.now())
	for _, d := range decisions {
		if !l.leaving[d.Instance] { // known to be leaving, and listed still
			l.decisions[d.Verdict]++
		}
		switch d.Verdict {
		case lifecycle.NotLaunched, lifecycle.Vanished, lifecycle.NotRegistered, lifecycle.NotInitialized:
			delete(l.written, d.Claim)
		case lifecycle.Orphaned, lifecycle.Surplus:
		}
		if d.Instance != "" {
			l.leaving[d.Instance] = true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(l.leaving)) {
		if err := l.provider.Delete(ctx, id); errors.Is(err, cloudprovider.ErrNotFound) {
			delete(l.leaving, id)
		}
	}
	l.check()
	return len(decisions) + len(l.leaving)
}

// check counts claims with two instances, in truth.
func (l *loop) check() {
	have := map[string]int{}
	for _, i := range l.cloud.Truth() {
		if have[i.Claim]++; have[i.Claim] == 2 {
			l.doubles++
		}
	}
}

// step is one turn of the loop.
func (l *loop) step(ctx context.Context, n int) {
	l.restart(0.001)
	if len(l.written) < l.nodes {
		l.plan(ctx)
		l.restart(0.01) // the claim is written, and nothing asked yet
	}
	names := slices.Sorted(maps.Keys(l.written))
	for _, name := range names {
		if w := l.written[name]; w.instance == "" {
			l.launch(ctx, name)
		}
	}
	// Claims are given back: finished ones, and now and then one in mid-launch, whatever its outcome.
	if len(names) > 0 && (len(names) >= l.nodes || l.chance.Float64() < 0.01) {
		name := names[l.chance.IntN(len(names))]
		if w, ok := l.written[name]; ok {
			if w.instance != "" {
				l.leaving[w.instance] = true
			}
			delete(l.written, name)
		}
	}
	if n%10 == 0 {
		l.cloud.Clock().Advance(30 * time.Second)
		l.collect(ctx)
	}
}

// run launches so many instances, then lets the faults end and everything settle.
func (l *loop) run(t *testing.T, launches int) {
	t.Helper()
	ctx := t.Context()
	for n := 0; len(l.launched) < launches; n++ {
		require.Less(t, n, 20*launches, "the loop does not get on: %d launches", len(l.launched))
		l.step(ctx, n)
	}
	l.provider = l.cloud
	for range 10 {
		l.cloud.Settle()
		l.cloud.Clock().Advance(10 * time.Minute)
		for _, name := range slices.Sorted(maps.Keys(l.written)) {
			if w := l.written[name]; w.instance == "" {
				l.launch(ctx, name)
			}
		}
		l.cloud.Settle()
		l.cloud.Clock().Advance(3 * time.Minute)
		if l.collect(ctx) == 0 {
			return
		}
	}
	t.Error("the loop does not come to rest")
}

func loopCloud(t *testing.T) *memcloud.Cloud {
	t.Helper()
	config := memcloud.Config{
		Types: catalogue(), Latency: 200 * time.Millisecond, Boot: 40 * time.Second, Shutdown: 20 * time.Second, Lag: 25 * time.Second,
		SpotLife: 10 * time.Hour, Seed: 11,
		Quotas: []memcloud.Quota{{Name: "cores of m", Covers: requirements.MustParse("node.kubernetes.io/instance-type in (m.small,m.large)"), Resource: "cpu", Limit: 44_000}},
	}
	for i, typ := range config.Types {
		for j, o := range typ.Offerings {
			config.Pools = append(config.Pools, memcloud.Pool{Type: typ.Name, Offering: o.Requirements, Free: 2 + i + j})
		}
	}
	cloud, err := memcloud.New(config)
	require.NoError(t, err)
	return cloud
}

func faults(p cloudprovider.Provider) cloudprovider.Provider {
	return cloudtest.Inject(p,
		cloudtest.Sometimes(cloudtest.OpCreate, 0.06, 1, cloudtest.Throttle()),
		cloudtest.Sometimes(cloudtest.OpCreate, 0.06, 2, cloudtest.LoseReply()),
		cloudtest.Sometimes(cloudtest.OpCreate, 0.04, 3, cloudtest.Cancel()),
		cloudtest.Sometimes(cloudtest.OpInstanceTypes, 0.02, 4, cloudtest.Throttle()),
		cloudtest.Sometimes(cloudtest.OpList, 0.10, 5, cloudtest.Stale()),
		cloudtest.Sometimes(cloudtest.OpList, 0.05, 6, cloudtest.Throttle()),
		cloudtest.Sometimes(cloudtest.OpDelete, 0.05, 7, cloudtest.LoseReply()),
		cloudtest.Sometimes(cloudtest.OpDelete, 0.05, 8, cloudtest.Cancel()),
	)
}

func TestLaunchLoop(t *testing.T) {
	if testing.Short() {
		t.Skip("launches ten thousand nodes")
	}
	const launches = 10_000
	cloud := loopCloud(t)
	l := newLoop(cloud, faults(cloud), 42, 30)
	l.run(t, launches)

	claims := map[string]string{}
	for name, w := range l.written {
		claims[name] = w.instance
	}
	instances := map[string]string{}
	for _, i := range cloud.Truth() {
		assert.NotContains(t, instances, i.Claim, "a claim with two instances")
		instances[i.Claim] = i.ID
	}
	assert.Equal(t, claims, instances, "every claim has its instance, and every instance its claim")
	assert.Zero(t, l.doubles, "at no time did a claim have two instances")

	// It was no fair weather.
	assert.Greater(t, l.restarts, 100)
	assert.Greater(t, l.unknown, 500)
	assert.Greater(t, l.failures[cloudprovider.ErrThrottled], 500)
	assert.Greater(t, l.failures[cloudprovider.ErrInsufficientCapacity], 10)
	assert.Greater(t, l.decisions[lifecycle.Orphaned], 10)
	assert.Greater(t, l.decisions[lifecycle.Vanished], 10, "spot machines were taken back")
	t.Logf("%d launches, %d restarts, %d unknown outcomes, refused on the way %d, failures %v, decisions %v, %d nodes at the end",
		len(l.launched), l.restarts, l.unknown, l.refusedOnTheWay, l.failures, l.decisions, len(instances))
}

// forgetful ignores tokens.
type forgetful struct {
	cloudprovider.Provider
	calls int
}

func (f *forgetful) Create(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
	f.calls++
	claim.Token = fmt.Sprintf("%s-%d", claim.Token, f.calls)
	return f.Provider.Create(ctx, claim)
}

// The loop relies on the provider: without idempotence it does buy twice, and the check sees it.
func TestLaunchLoopNeedsTokens(t *testing.T) {
	cloud := loopCloud(t)
	l := newLoop(cloud, faults(&forgetful{Provider: cloud}), 42, 20)
	for n := range 2000 {
		l.step(t.Context(), n)
	}
	assert.Positive(t, l.doubles)
}

// The same calls in the same order give the same answers.
func TestLaunchLoopIsDeterministic(t *testing.T) {
	var ends [2][]cloudprovider.Instance
	for i := range ends {
		cloud := loopCloud(t)
		newLoop(cloud, faults(cloud), 7, 20).run(t, 300)
		ends[i] = cloud.Truth()
	}
	assert.Equal(t, ends[0], ends[1])
	assert.NotEmpty(t, ends[0])
}
