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

// budgets reads the budgets of v1beta1 and v1. A missing list is one budget of 10%. own is the
// reason that only this version has.
func (d *Disruption) budgets(r *nodespec.Report, path string, list *[]wireBudget, own string) {
	reasons := []string{string(Underutilized), string(Empty), string(Drifted), own}
	tenth := Budget{Nodes: 10, Percent: true}
	if list == nil {
		d.Budgets = []Budget{tenth}
		return
	}
	const most = 50
	if len(*list) > most {
		r.Add(path, "%d budgets: at most %d", len(*list), most)
		return
	}
	for i, w := range *list {
		at := fmt.Sprintf("%s[%d]", path, i)
		b := tenth
		if w.Nodes != nil {
			b.nodes(r, at+".nodes", *w.Nodes)
		}
		for j, reason := range w.Reasons {
			at := fmt.Sprintf("%s.reasons[%d]", at, j)
			if reason == string(Unhealthy) && own != reason {
				r.Add(at, "%q: want one of %s; pools of %s have it since Karpenter v1.15", reason, strings.Join(reasons, ", "), V1)
			} else if r.OneOf(at, reason, reasons...) {
				b.Reasons = append(b.Reasons, Reason(reason))
			}
		}
		switch {
		case w.Schedule != nil && w.Duration == nil:
			r.Add(at+".duration", "a budget with a schedule needs a duration")
		case w.Schedule == nil && w.Duration != nil:
			r.Add(at+".schedule", "a budget with a duration needs a schedule")
		}
		if w.Schedule != nil {
			if _, err := parseSchedule(*w.Schedule); err != nil {
				r.Add(at+".schedule", "%s", err)
			}
			b.Schedule = *w.Schedule
		}
		if w.Duration != nil {
			b.Duration = budgetDuration(r, at+".duration", *w.Duration)
		}
		d.Budgets = append(d.Budgets, b)
	}
}

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
	}
	return d
}
