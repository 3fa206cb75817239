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
	// Name and Token are those of the NodeClaim; the token is what owns an instance.
	Name, Token string
	// Created is when the claim was written down; [Timeouts.Launch] and [Timeouts.Register] count from it. Where many claims wait to be
	// launched, set it to the first call of Create, or to now before that call. Otherwise claims are given up that were never tried.
	Created time.Time
	// Instance is the id that Create returned, empty as long as no answer has come; Launched is when it came.
	Instance string
	Launched time.Time
	// Registered and Initialized are when the node joined and when it was ready for pods; the zero time = not yet.
	Registered, Initialized time.Time
}

// Timeouts are how long things may take. The zero value means the defaults.
type Timeouts struct {
	// Orphan is the age that an instance without a claim is allowed, in which its claim may still be written down where
	// readers see it. 0 = 30 seconds.
	Orphan time.Duration
	// Lag is for how long after a launch the provider's list may not show the instance. 0 = 1 minute.
	Lag time.Duration
	// Launch is how long Create may take to succeed, all tries together. 0 = 5 minutes.
	Launch time.Duration
	// Register is the time from the claim's creation until its node must have joined. 0 = 15 minutes.
	Register time.Duration
	// Initialize is the time from joining until the node must be ready for pods. 0 = no limit: a node that has joined may
	// wait for a device plugin for long, and a person may be debugging it.
	Initialize time.Duration
}

// WithDefaults replaces the zeros.
func (t Timeouts) WithDefaults() Timeouts {
	t.Orphan = cmp.Or(t.Orphan, 30*time.Second)
	t.Lag = cmp.Or(t.Lag, time.Minute)
	t.Launch = cmp.Or(t.Launch, 5*time.Minute)
	t.Register = cmp.Or(t.Register, 15*time.Minute)
	return t
}

// Verdict says what is wrong.
type Verdict string

// The verdicts.
const (
	// Orphaned instances are of no claim.
	Orphaned Verdict = "Orphaned"
	// Surplus instances are of a claim that has another one.
	Surplus Verdict = "Surplus"
	// NotLaunched claims got no instance in time.
	NotLaunched Verdict = "NotLaunched"
	// Vanished claims had an instance that exists no more.
	Vanished Verdict = "Vanished"
	// NotRegistered claims have an instance that never joined.
	NotRegistered Verdict = "NotRegistered"
	// NotInitialized claims have a node that never got ready.
	NotInitialized Verdict = "NotInitialized"
	// Irreparable: the node has had a condition for longer than machines recover from; see [Repairs].
	Irreparable Verdict = "Irreparable"
)

// Decision is one thing to give back: an instance (Orphaned, Surplus), otherwise a claim together with its instance, if it
// has one.
type Decision struct {
	Verdict Verdict
	// Claim is the name of the claim, Token its token; for an orphan the ones that its instance was made for.
	Claim, Token string
	// Instance is the id of the instance to delete; empty if there is none to be seen.
	Instance string
	// Since is when the verdict became true.
	Since time.Time
	// Detail says why, for people.
	Detail string
	// Reboot and Grace are those of the repair policy, of a decision of [Repairs].
	Reboot bool
	Grace  *time.Duration
}

// Review compares claims with a list of instances and says what to give back now: decisions in the order of the verdicts
// above, then by claim, token and instance. Next is the earliest time at which the same input leads to more decisions, the zero
// time if there is none. Instances without any token are not of our making and are left alone; so are those that are
// already terminating, except that a claim whose instance is terminating is not treated as vanished before it is gone.
// The cost is O(n log n).
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
			if i == kept || inst.State == cloudprovider.Terminating {
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
		if inst.Token == "" || known[inst.Token] || inst.State == cloudprovider.Terminating || !due(since) {
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

// keep is the index of the instance that stays with the claim: the one it knows and no other; if it knows none, the oldest
// that is not on its way out, and of equal age the one with the least id; -1 if there is none.
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

// judge completes d, which names the claim, with the first verdict that is due and reports whether there is one.
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
	case !seen && verdict(Vanished, c.Launched.Add(limits.Lag), "the provider lists %q no more", c.Instance):
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
