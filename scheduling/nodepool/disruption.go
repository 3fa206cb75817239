package nodepool

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Policy says which nodes consolidation may remove.
type Policy string

// The consolidation policies. The zero value "" removes none.
const (
	// WhenEmpty removes nodes that run no pods. Pods of daemons do not count.
	WhenEmpty Policy = "WhenEmpty"
	// WhenEmptyOrUnderutilized also removes nodes whose pods fit elsewhere or on a cheaper node. It
	// is WhenUnderutilized in v1beta1 and consolidation.enabled in v1alpha5.
	WhenEmptyOrUnderutilized Policy = "WhenEmptyOrUnderutilized"
	// Balanced is WhenEmptyOrUnderutilized for savings that outweigh the disruption.
	Balanced Policy = "Balanced"
)

// Reason says why a node is removed.
type Reason string

// The reasons that a budget may be limited to.
const (
	Underutilized Reason = "Underutilized"
	Empty         Reason = "Empty"
	Drifted       Reason = "Drifted"
	// Unhealthy is the repair of a broken node, since Karpenter v1.15.
	Unhealthy Reason = "Unhealthy"
)

// Disruption says when nodes of a pool may be removed. The zero value removes none.
type Disruption struct {
	// Policy says which nodes consolidation may remove.
	Policy Policy
	// ConsolidateAfter is how long the pods of a node must be unchanged before consolidation may
	// remove the node. nil means never, whatever the policy.
	ConsolidateAfter *time.Duration
	// ExpireAfter is the age at which a node is removed; nil means never.
	ExpireAfter *time.Duration
	// Budgets limit how many nodes may be removed at once; the active budget that allows the fewest
	// nodes is used. None means no limit, as in v1alpha5. Later versions default to one budget of
	// 10%.
	Budgets []Budget
}

// Budget limits how many nodes of a pool may be removed at once. The zero value always allows none.
type Budget struct {
	// Nodes is the number allowed, or the share of the pool's nodes in percent (0 to 100) if
	// Percent is set.
	Nodes   int
	Percent bool
	// Reasons are the reasons that the budget counts for; empty means all.
	Reasons []Reason
	// Schedule is when the budget becomes active, in UTC, in the five fields of cron or a word such
	// as "@daily". Duration is how long it then stays active. An empty Schedule means always.
	Schedule string
	Duration time.Duration
}

// Allowed returns how many of a pool's nodes may be removed at once while the budget is active.
// Percentages are rounded up: 5% of ten nodes is one node.
func (b Budget) Allowed(nodes int) int {
	if !b.Percent {
		return b.Nodes
	}
	return (nodes*b.Nodes + 99) / 100
}

// Counts reports whether the budget limits disruption for the reason.
func (b Budget) Counts(r Reason) bool { return len(b.Reasons) == 0 || slices.Contains(b.Reasons, r) }

// Active reports whether the budget is active at now: its schedule started less than Duration ago,
// or it has no schedule. The error is that of an invalid Schedule, which no decoded pool has.
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

// parseSchedule reads a schedule of Karpenter: five fields or a word of cron, in UTC. Time zones
// and "@every" are errors, as in its CRD.
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
