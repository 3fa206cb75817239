package nodepool

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/joinery-sdk/joinery/internal/strictjson"
	"github.com/joinery-sdk/joinery/scheduling/nodepool/internal/nodespec"
)

// budgets reads the budgets of v1beta1 and v1. A missing list is one budget of 10%.
func (d *Disruption) budgets(r *nodespec.Report, list *[]wireBudget) {
	tenth := Budget{Nodes: 10, Percent: true}
	if list == nil {
		d.Budgets = []Budget{tenth}
		return
	}
	for i, w := range *list {
		at := fmt.Sprintf("%s[%d]", budgetsPath, i)
		b := tenth
		if w.Nodes != nil {
			b.nodes(r, at+".nodes", *w.Nodes)
		}
		for _, reason := range w.Reasons {
			b.Reasons = append(b.Reasons, Reason(reason))
		}
		switch {
		case w.Schedule != nil && w.Duration == nil:
			r.Add(at+".duration", needsDuration)
		case w.Schedule == nil && w.Duration != nil:
			r.Add(at+".schedule", needsSchedule)
		}
		if w.Schedule != nil {
			if b.Schedule = *w.Schedule; b.Schedule == "" {
				b.schedule(r, at)
			}
		}
		if w.Duration != nil {
			b.Duration = budgetDuration(r, at+".duration", *w.Duration)
		}
		d.Budgets = append(d.Budgets, b)
	}
}

const (
	budgetsPath   = "spec.disruption.budgets"
	needsDuration = "a budget with a schedule needs a duration"
	needsSchedule = "a budget with a duration needs a schedule"
)

// check checks a budget of a pool of some version.
func (b *Budget) check(r *nodespec.Report, at, version string) {
	if b.Nodes < 0 || b.Percent && b.Nodes > 100 {
		r.Add(at+".nodes", "%d: want a count of 0 or more, or a share of at most 100%%", b.Nodes)
	}
	reasons := []string{string(Underutilized), string(Empty), string(Drifted), "Expired"}
	if version != V1Beta1 {
		reasons[3] = string(Unhealthy)
	}
	for j, reason := range b.Reasons {
		at := fmt.Sprintf("%s.reasons[%d]", at, j)
		if reason == Unhealthy && version == V1Beta1 {
			r.Add(at, "%q: want one of %s; pools of %s have it since Karpenter v1.15", reason, strings.Join(reasons, ", "), V1)
			continue
		}
		r.OneOf(at, string(reason), reasons...)
	}
	if b.Schedule != "" {
		b.schedule(r, at)
	} else if b.Duration != 0 {
		r.Add(at+".schedule", needsSchedule)
	}
	if b.Duration < 0 || b.Duration%time.Minute != 0 {
		r.Add(at+".duration", "%s: want hours and minutes such as 8h or 1h30m", b.Duration)
	}
}

func (b *Budget) schedule(r *nodespec.Report, at string) {
	if _, err := parseSchedule(b.Schedule); err != nil {
		r.Add(at+".schedule", "%s", err)
	}
}

// isNever reports whether the budget has a schedule and is active for no time.
func (b Budget) isNever() bool { return b.Schedule != "" && b.Duration == 0 }

func (b *Budget) nodes(r *nodespec.Report, path, text string) {
	parsed, err := ParseBudget(text)
	if err != nil {
		r.Add(path, "%s", err)
	}
	b.Nodes, b.Percent = parsed.Nodes, parsed.Percent
}

// ParseBudget reads a count of nodes such as "5", or a share such as "10%", as a budget for all
// reasons that is always active.
func ParseBudget(text string) (Budget, error) {
	digits, percent := strings.CutSuffix(text, "%")
	n, err := strconv.ParseUint(digits, 10, 31)
	switch {
	case err != nil:
		return Budget{}, fmt.Errorf("%s: want a count such as \"5\" or a share such as \"10%%\"", strictjson.Quote(text))
	case percent && n > 100:
		return Budget{}, fmt.Errorf("%s: a share is at most 100%%", strictjson.Quote(text))
	}
	return Budget{Nodes: int(n), Percent: percent}, nil
}

// budgetDurations is the pattern of Karpenter's schema, without seconds other than 0.
var budgetDurations = regexp.MustCompile(`^([0-9]+h|[0-9]+m|[0-9]+h[0-9]+m)(0s)?$`)

func budgetDuration(r *nodespec.Report, path, text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil || !budgetDurations.MatchString(text) {
		r.Add(path, "%s: want hours and minutes such as 8h or 1h30m", strictjson.Quote(text))
		return 0
	}
	return d
}
