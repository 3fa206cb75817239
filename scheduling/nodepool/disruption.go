package nodepool

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Policy says which nodes consolidation may take.
type Policy string

// The consolidation policies. The zero value "" means that nodes are never taken for it.
const (
	// WhenEmpty takes only nodes on which nothing but daemons runs.
	WhenEmpty Policy = "WhenEmpty"
	// WhenEmptyOrUnderutilized also takes nodes whose pods fit elsewhere or on a cheaper node. v1beta1 calls it
	// WhenUnderutilized, v1alpha5 consolidation.enabled.
	WhenEmptyOrUnderutilized Policy = "WhenEmptyOrUnderutilized"
	// Balanced takes what WhenEmptyOrUnderutilized would, if the saving is worth the disruption.
	Balanced Policy = "Balanced"
)

// Reason is why a node is given back.
type Reason string

// The reasons that a budget may be limited to.
const (
	Underutilized Reason = "Underutilized"
	Empty         Reason = "Empty"
	Drifted       Reason = "Drifted"
)

// Disruption says when nodes of a pool may be given back. The zero value never gives any back.
type Disruption struct {
	// Policy is which nodes consolidation may take.
	Policy Policy
	// ConsolidateAfter is how long a node must have been left alone by pods first; nil means never, which turns
	// consolidation off whatever the policy.
	ConsolidateAfter *time.Duration
	// ExpireAfter is the age at which a node is given back in any case; nil means never.
	ExpireAfter *time.Duration
	// Budgets limit how many nodes may be on their way out at once; the smallest that is active counts. None means no
	// limit. v1alpha5 has none; later versions have one of 10% unless the manifest says otherwise.
	Budgets []Budget
}

// Budget limits how many nodes of a pool may be on their way out at the same time. The zero value allows none, always.
type Budget struct {
	// Nodes is the number allowed, or the share of the pool's nodes in percent (0 to 100) if Percent is set.
	Nodes   int
	Percent bool
	// Reasons that the budget counts for; empty means all.
	Reasons []Reason
	// Schedule is when the budget becomes active, in the five fields of cron or a word such as "@daily", in UTC;
	// Duration is for how long. An empty Schedule means always.
	Schedule string
	Duration time.Duration
}

// Allowed is how many of a pool's nodes may be on their way out at once under the budget while it is active. Shares
// round up, so that 5% of ten nodes is one node and a small pool can move.
func (b Budget) Allowed(nodes int) int {
	if !b.Percent {
		return b.Nodes
	}
	return (nodes*b.Nodes + 99) / 100
}

// Counts reports whether the budget limits disruption for that reason.
func (b Budget) Counts(r Reason) bool { return len(b.Reasons) == 0 || slices.Contains(b.Reasons, r) }

// Active reports whether the budget counts at now: whether its schedule struck at or before now and at most Duration
// ago. The error is that of a Schedule that cannot be read; no decoded pool has one. Parsing the schedule is the cost.
func (b Budget) Active(now time.Time) (bool, error) {
	if b.Schedule == "" {
		return true, nil
	}
	schedule, err := parseSchedule(b.Schedule)
	if err != nil {
		return false, fmt.Errorf("nodepool: %w", err)
	}
	now = now.UTC()
	next := schedule.Next(now.Add(-b.Duration))
	return !next.IsZero() && !next.After(now), nil
}

// parseSchedule reads what Karpenter's schedules may hold: five fields or one of cron's words, in UTC. Time zones and
// "@every" are refused, as its CRD does.
func parseSchedule(text string) (cron.Schedule, error) {
	words := []string{"@annually", "@yearly", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}
	fields := strings.Fields(text)
	switch {
	case strings.HasPrefix(text, "@"):
		if !slices.Contains(words, text) {
			return nil, fmt.Errorf("schedule %q: want one of %s or five fields", text, strings.Join(words, ", "))
		}
	case strings.Contains(text, "TZ="):
		return nil, fmt.Errorf("schedule %q: time zones are not supported, the schedule is in UTC", text)
	case len(fields) != 5:
		return nil, fmt.Errorf("schedule %q: want five fields (minute, hour, day of month, month, day of week), got %d",
			text, len(fields))
	}
	schedule, err := cron.ParseStandard("TZ=UTC " + strings.Join(fields, " "))
	if err != nil {
		return nil, fmt.Errorf("schedule %q: %w", text, err)
	}
	return schedule, nil
}
