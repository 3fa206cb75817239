package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider"
)

// Claim is what is known of one claim.
type Claim struct {
	// Name and Token are those of the NodeClaim. Instances belong to the token.
	Name, Token string
	// Created is when the claim was recorded. [Timeouts.Launch] and [Timeouts.Register] count from
	// it. If many claims wait to be launched, set it to the time of the first call of Create, or to
	// now before that call. Otherwise Review gives up claims for which Create was never called.
	Created time.Time
	// Instance is the id that Create returned, or empty while there is no answer. Launched is when
	// the answer came.
	Instance string
	Launched time.Time
	// Registered is when the node joined, and Initialized when it became ready for pods. The zero
	// time means not yet.
	Registered, Initialized time.Time
	// Ready says that the node reports now that it is ready. Then its machine exists, even if the
	// list lacks it: lists of large clouds are known to leave out machines. The claim does not
	// count as vanished before its node has fallen silent, which takes Kubernetes less than a
	// minute.
	Ready bool
}

// Timeouts limit how long each step may take. The zero value means the defaults.
type Timeouts struct {
	// Orphan is the age at which an instance without a claim counts as an orphan. Until then its
	// claim may not be visible to readers yet. 0 means 90 seconds: Instance.Created may be a minute
	// too early.
	Orphan time.Duration
	// Lag is how long after a launch the provider's list may not show the instance. It must be
	// longer than the provider's own lag, which is a minute for aws.Options. 0 means 2 minutes.
	Lag time.Duration
	// Launch is how long Create may take to succeed, all attempts together. 0 means 5 minutes.
	Launch time.Duration
	// Register is the time from the claim's creation until its node must have joined. 0 means 15
	// minutes.
	Register time.Duration
	// Initialize is the time from joining until the node must be ready for pods. 0 means no limit:
	// a node that has joined may wait long for a device plugin, or a person may be debugging it.
	Initialize time.Duration
}

// WithDefaults returns the timeouts with zeros replaced by the defaults.
func (t Timeouts) WithDefaults() Timeouts {
	t.Orphan = cmp.Or(t.Orphan, 90*time.Second)
	t.Lag = cmp.Or(t.Lag, 2*time.Minute)
	t.Launch = cmp.Or(t.Launch, 5*time.Minute)
	t.Register = cmp.Or(t.Register, 15*time.Minute)
	return t
}

// Verdict says what is wrong.
type Verdict string

// The verdicts.
const (
	// Orphaned instances belong to no claim.
	Orphaned Verdict = "Orphaned"
	// Surplus instances belong to a claim that has another instance.
	Surplus Verdict = "Surplus"
	// NotLaunched claims got no instance in time.
	NotLaunched Verdict = "NotLaunched"
	// Vanished claims had an instance that no longer exists.
	Vanished Verdict = "Vanished"
	// NotRegistered claims have an instance that did not join in time.
	NotRegistered Verdict = "NotRegistered"
	// NotInitialized claims have a node that was not ready in time.
	NotInitialized Verdict = "NotInitialized"
	// Irreparable nodes have had a condition for longer than machines take to recover by
	// themselves. [Repairs] says whether to replace or reboot them.
	Irreparable Verdict = "Irreparable"
)

// Decision is one thing to give back. For Orphaned and Surplus it is an instance; otherwise it is a
// claim together with its instance, if there is one.
type Decision struct {
	Verdict Verdict
	// Claim is the name of the claim, and Token its token. For an orphan they are those that its
	// instance was made for.
	Claim, Token string
	// Instance is the id of the instance to delete. It is empty if none is visible.
	Instance string
	// Since is when the verdict became true.
	Since time.Time
	// Detail is the reason, for people.
	Detail string
	// Reboot and Grace are those of the repair policy, in a decision of [Repairs].
	Reboot bool
	Grace  *time.Duration
	// Urgency is how long a decision of [Repairs] has been due, plus half an hour for each lower
	// priority that some policy has.
	Urgency time.Duration
}

// Review compares claims with a list of instances and says what to give back now. The decisions are
// in the order of the constants of [Verdict], then by claim, token and instance. next is the
// earliest time at which the same input leads to more decisions, or the zero time if there is none.
//
// Instances without a token were made by someone else and are left alone. So are instances that are
// already terminating, and instances of unknown age that no claim has. A claim whose instance is
// terminating, or whose node is ready, does not count as vanished. The cost is O(n log n).
func Review(claims []Claim, instances []cloudprovider.Instance, timeouts Timeouts, now time.Time) (decisions []Decision, next time.Time) {
	limits := timeouts.WithDefaults()
	due := func(at time.Time) bool {
		if !at.After(now) {
			return true
		}
		if next.IsZero() || at.Before(next) {
			next = at
		}
		return false
	}
	owned := map[string][]cloudprovider.Instance{}
	for _, inst := range instances {
		if inst.Token != "" {
			owned[inst.Token] = append(owned[inst.Token], inst)
		}
	}
	known := make(map[string]bool, len(claims))
	for _, claim := range claims {
		known[claim.Token] = true
		mine := owned[claim.Token]
		kept := keep(claim, mine)
		for i, inst := range mine {
			stays := i == kept || inst.ID == claim.Instance || kept >= 0 && inst.ID == mine[kept].ID // a list may name it twice
			if stays || inst.State == cloudprovider.Terminating {
				continue
			}
			decisions = append(decisions, Decision{
				Verdict: Surplus, Claim: claim.Name, Token: claim.Token, Instance: inst.ID, Since: inst.Created,
				Detail: fmt.Sprintf("the claim has the instance %q", cmp.Or(claim.Instance, mine[max(kept, 0)].ID)),
			})
		}
		d := Decision{Claim: claim.Name, Token: claim.Token, Instance: claim.Instance}
		if kept >= 0 {
			d.Instance = mine[kept].ID
		}
		if claim.judge(&d, kept >= 0, limits, due) {
			decisions = append(decisions, d)
		}
	}
	for _, inst := range instances {
		since := inst.Created.Add(limits.Orphan)
		if inst.Token == "" || known[inst.Token] || inst.State == cloudprovider.Terminating || inst.Created.IsZero() || !due(since) {
			continue
		}
		decisions = append(decisions, Decision{
			Verdict: Orphaned, Claim: inst.Claim, Token: inst.Token, Instance: inst.ID, Since: since,
			Detail: fmt.Sprintf("no claim has its token, and it is older than %s", limits.Orphan),
		})
	}
	slices.SortFunc(decisions, func(a, b Decision) int {
		return cmp.Or(cmp.Compare(a.Verdict.rank(), b.Verdict.rank()), strings.Compare(a.Claim, b.Claim),
			strings.Compare(a.Token, b.Token), strings.Compare(a.Instance, b.Instance))
	})
	return decisions, next
}

// keep returns the index of the instance that stays with the claim, or -1 if there is none. If the
// claim knows its instance, it is that one and no other. Otherwise it is the oldest instance that
// is not terminating, and of equal age the one with the smallest id.
func keep(claim Claim, mine []cloudprovider.Instance) int {
	if claim.Instance != "" {
		return slices.IndexFunc(mine, func(i cloudprovider.Instance) bool { return i.ID == claim.Instance })
	}
	best := -1
	leaving := func(i int) int {
		if mine[i].State == cloudprovider.Terminating {
			return 1
		}
		return 0
	}
	for i := range mine {
		if best < 0 || cmp.Or(cmp.Compare(leaving(i), leaving(best)), mine[i].Created.Compare(mine[best].Created), strings.Compare(mine[i].ID, mine[best].ID)) < 0 {
			best = i
		}
	}
	return best
}

// judge completes d, which names the claim, with the first verdict that is due. It reports whether
// there is one.
func (c Claim) judge(d *Decision, seen bool, limits Timeouts, due func(time.Time) bool) bool {
	verdict := func(v Verdict, since time.Time, format string, args ...any) bool {
		if !due(since) {
			return false
		}
		d.Verdict, d.Since, d.Detail = v, since, fmt.Sprintf(format, args...)
		return true
	}
	switch {
	case c.Instance == "" && !seen:
		return verdict(NotLaunched, c.Created.Add(limits.Launch), "no instance within %s", limits.Launch)
	case !seen && !c.Ready && verdict(Vanished, c.Launched.Add(limits.Lag), "the provider no longer lists %q", c.Instance):
		return true
	case c.Registered.IsZero():
		return verdict(NotRegistered, c.Created.Add(limits.Register), "no node has joined within %s", limits.Register)
	case c.Initialized.IsZero() && limits.Initialize > 0:
		return verdict(NotInitialized, c.Registered.Add(limits.Initialize), "the node was not ready within %s", limits.Initialize)
	default:
		return false
	}
}

func (v Verdict) rank() int {
	return slices.Index([]Verdict{Orphaned, Surplus, NotLaunched, Vanished, NotRegistered, NotInitialized, Irreparable}, v)
}
