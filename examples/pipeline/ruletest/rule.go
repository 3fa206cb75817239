// Package ruletest tests scheduling rules against a plan, without a cluster: where pods land,
// beside which pods, and what they cost.
//
// A [Scenario] is pods, pools and nodes, built with [Pod], [Deployment], [DaemonSet], [Pool] and
// [ExistingNode] or read from manifests. It buys from the embedded EC2 catalogue or from types of
// the test's own ([Type]). [Scenario.Plan] plans it, and the demands of [Pods] report to the test:
//
//	plan := ruletest.New(ruletest.Pool("default"), ruletest.Deployment("shop/web", 5).Requests("cpu", "500m")).Plan(t)
//	plan.Pods("shop/web-*").LandOn(ruletest.On("kubernetes.io/arch=arm64")).CostAtMost(0.20)
//
// A failed demand says where the pods are instead, and what moved them. It names one of the
// following:
//
//   - constraints of the pods themselves that contradict landsOn
//   - each constraint of a pending pod, each requirement, weight, limit or taint of a pool, and each
//     quota without which the rule would hold; in a large cluster, the first 48 of them are tried,
//     beginning with the pods that break the rule, and those of pods outside the rule come last
//   - if there is none, what stops the pods when they are forced to keep the rule: each such
//     constraint without which they can keep it, or else why they are refused; or what it costs at
//     most to keep the rule
//
// Nothing is guessed. Contradictions are computed from the requirements, preferences that were
// given up are read from the plan, and all else comes from planning again with that one change. A
// rule can demand more than a manifest can say, such as a spread with atLeast or skew. To force the
// pods to keep such a rule, several constraints are tried that are a little stricter, for example
// different values for some pods, or certain zones for all. The cheapest plan that keeps the rule
// counts. If none does, the message says what was tried.
//
// Without a test, [Plan.Check] returns the same as data.
//
// # Rules as YAML
//
// [Parse] reads rules from a file: the same demands in the same words. A file is a list of rules,
// below "rules" or by itself. Each rule names pods and makes one or more demands.
//
//	rules:
//	- rule: the front end runs on arm64, and never on burstable types     # a name, if you like
//	  pods: shop/web-*                     # namespace/name; * is any text, commas separate; none: all pods
//	  labels: app=web,tier!=cache          # a label selector, instead of pods or to narrow them
//	  landsOn: kubernetes.io/arch=arm64    # labels of the node, in the text form of package requirements
//	  neverOn: {instanceType: "t3.*,t3a.*,t4g.*"}
//	  placed: true                         # every pod has a place
//
//	- pods: batch/*
//	  landsOn:                             # one of these places; all that a place says must fit
//	  - {pool: spot, zone: us-east-1a}
//	  - {pool: fallback, capacityType: on-demand}
//	  - {node: ip-10-0-0-*}                # existing nodes by name
//	  atMostPerHour: 0.25                  # dollars, for the new nodes that these pods are on
//
//	- pods: lab/train-*
//	  allOrNothing: true                   # all have a place, or none; spares of a PodGroup may be without
//
//	- pods: shop/cache-*
//	  apart: node                          # no two on one node, by its name; or zone, or any label key
//
//	- pods: shop/web-*
//	  apart: {by: zone, most: 3}           # at most three in one zone
//
//	- pods: shop/web-*
//	  spread: {by: zone, atLeast: 3, skew: 1}     # over three zones, none with two more than another;
//	                                       # "zone" alone is {by: zone, atLeast: 2, skew: 1}
//
//	- pods: shop/web-*
//	  together: {by: zone, with: shop/cache-*}    # each has one of the others in its zone
//
//	- pods: shop/web-*
//	  apart: {by: node, with: batch/*}     # none has one of the others on its node
//
//	- pods: shop/gpu-0
//	  refused: nvidia.com/gpu              # no place, and the explanation says so
//
//	- pods: shop/report-0
//	  refused: {stage: taint, pool: batch} # no place, for the taint of that pool
//
//	- rule: the whole plan is within its budget
//	  atMostPerHour: 12
//
//	- pods: shop/web-*
//	  survives: zone, node                 # any one may be lost; mayWait: true lets pods wait for new nodes
//
//	- rulesCost:                           # in dollars: no rule, and no two rules together, may cost more a month
//	    atMostPerMonth: 200
//	    of: "NodePool *, Deployment shop/*"          # all rules, if it is left out
//	    except: "NodePool general: kubernetes.io/arch*"
//	    proved: true                       # by the bounds, too, it cannot cost more
//
//	- regret: {aboveBound: 20, abovePolicy: 5}       # percent, of what a recorded history cost
//
// Reading is strict: unknown fields, wrong types and rules that demand nothing are errors with
// their line.
//
// Rules with rulesCost cover requirements, limits, minValues and weights of pools, and selectors,
// spreads, affinity and preferences of pods. If nodes run, they also cover PodDisruptionBudgets and
// do-not-disrupt; see packages rulecost and protection. Rules with regret are about a recorded
// history; see [Plan.Recorded] and package regret.
//
// A rule that no pending pod matches is broken. So is one that names a pod, node, pool, type, zone,
// capacity type or label that does not exist, or a value of a label that no node can have. Each
// pattern and value of a list counts by itself. Otherwise a rule about what must not happen would
// always hold because of a typo. There is one exception: a label that a rule only forbids ("!gpu";
// for pods also "tier!=x") need not exist, because the rule may be there to keep it away. If
// nothing has the label, the rule holds, and its result names the label, which may be a typo.
//
// Rules make demands on pending pods only. Running pods count where a rule says which other pods must
// be near or apart, but what they do among themselves breaks no rule. Only survives makes demands on
// running pods, too. Rules do not cover the pods of DaemonSets, which are on every node that accepts
// them.
//
// Pods that are refused or not planned, such as those of another scheduler, have no place. So they
// break what demands one (placed, landsOn, survives, and allOrNothing if others have one), and the
// breach says why they are not planned. Other rules hold for them, and the result names these pods
// and the reason, whatever the rule demands. Only a rule that has regret alone is not about pods.
package ruletest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/plan/survive"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

// Rule is something that a plan must keep. It selects some pending pods and makes one or more
// demands, all of which must hold. The zero value selects all pods and demands nothing;
// [Rule.Validate] rejects it.
type Rule struct {
	// Name is the name of the rule in messages. Without one, messages say what it demands.
	Name string `json:"rule,omitempty"`
	// Pods selects pods by "namespace/name". * stands for any text, and commas separate
	// alternatives. A name without a namespace is in "default". Empty means all pods.
	Pods string `json:"pods,omitempty"`
	// Labels restricts Pods by a label selector: "app=web,tier!=cache".
	Labels string `json:"labels,omitempty"`

	// Placed demands that every pod has a place.
	Placed bool `json:"placed,omitempty"`
	// AllOrNothing demands that all pods have a place, or none. Pods of a group beyond its minimum
	// may be without one.
	AllOrNothing bool `json:"allOrNothing,omitempty"`
	// LandsOn demands that every pod has a place on one of these nodes.
	LandsOn []Place `json:"landsOn,omitempty"`
	// NeverOn demands that no pod is on one of these nodes.
	NeverOn []Place `json:"neverOn,omitempty"`
	// Together demands that pods share a node, zone or other label. Apart demands that they do not.
	// If Together has no With and some of the pods run already, it demands the value that most of
	// the running pods have.
	Together *Company `json:"together,omitempty"`
	Apart    *Company `json:"apart,omitempty"`
	// Spread demands that pods are evenly spread over zones, nodes or another label.
	Spread *Spread `json:"spread,omitempty"`
	// AtMostPerHour demands that the new nodes with these pods together cost at most this many US
	// dollars an hour. Existing nodes add no cost.
	AtMostPerHour *float64 `json:"atMostPerHour,omitempty"`
	// Refused demands that no pod gets a place, for this reason.
	Refused *Refusal `json:"refused,omitempty"`
	// Survives demands that the pods have places, and at once if any single zone, spot-pool,
	// reservation, node or instance-family is lost. Commas separate several kinds of failures, see
	// [survive.Kind]. With MayWait, the pods may wait for nodes that are bought then.
	Survives string `json:"survives,omitempty"`
	MayWait  bool   `json:"mayWait,omitempty"`
	// RulesCost limits what a rule of the cluster may cost. Regret limits how much more a recorded
	// history may have cost than necessary. Neither is about pods, so Pods and Labels must be
	// empty.
	RulesCost *RulesCost `json:"rulesCost,omitempty"`
	Regret    *Regret    `json:"regret,omitempty"`

	// Position is where the rule was read.
	Position manifests.Position `json:"-"`
}

// AllOrNothing returns the rule that all pods of these names have a place, or none: "lab/train-*";
// see [Rule].Pods.
func AllOrNothing(pods string) Rule { return Rule{Pods: pods, AllOrNothing: true} }

// Place describes nodes by their properties, all of which must match. In Pool, InstanceType, Zone,
// CapacityType and Node, * stands for any text, and commas separate alternatives. The zero value is
// every node.
type Place struct {
	Pool         string `json:"pool,omitempty"`
	InstanceType string `json:"instanceType,omitempty"`
	Zone         string `json:"zone,omitempty"`
	CapacityType string `json:"capacityType,omitempty"`
	// Node is the name of an existing node.
	Node string `json:"node,omitempty"`
	// Labels is a text of package requirements, such as "kubernetes.io/arch=arm64,
	// karpenter.k8s.aws/instance-cpu>4".
	Labels string `json:"labels,omitempty"`
}

// On returns the place of all nodes with these labels, see [Place].Labels.
func On(labels string) Place { return Place{Labels: labels} }

// Company says with which pods the pods of a rule must be, or must not be.
type Company struct {
	// By is the label key whose value they share. "zone" stands for topology.kubernetes.io/zone.
	// "node" is the node itself, by its name, whatever its label kubernetes.io/hostname says.
	By string `json:"by"`
	// With names other pods, in the form of [Rule].Pods. In [Rule].Together, each pod has one of
	// them beside it; in [Rule].Apart, none has. Empty means the pods of the rule themselves.
	// Running pods count.
	With string `json:"with,omitempty"`
	// Most is for [Rule].Apart if With is empty: how many of the rule's pods may share a value. 0
	// means 1.
	Most int `json:"most,omitempty"`
}

// Spread says how evenly pods must be spread over the values of a label. At least one of AtLeast
// and Skew is set.
type Spread struct {
	// By is as in [Company].
	By string `json:"by"`
	// AtLeast is the minimum number of values; 0 demands nothing.
	AtLeast int `json:"atLeast,omitempty"`
	// Skew is by how many pods the fullest value may exceed the emptiest one, among values that
	// have pods; 0 demands nothing.
	Skew int `json:"skew,omitempty"`
}

// Refusal is why pods get no place. Everything given must be true of the same reason. The zero
// value matches any reason.
type Refusal struct {
	// Stage is where the pool refuses: one of the stages of package scheduling.
	Stage scheduling.Stage `json:"stage,omitempty"`
	// Text is a part of the explanation, in upper or lower case.
	Text string `json:"text,omitempty"`
	// Pool is the pool whose reason it is.
	Pool string `json:"pool,omitempty"`
}

func stages() []string {
	var out []string
	for _, s := range []scheduling.Stage{
		scheduling.StagePod, scheduling.StageTaint, scheduling.StageRequirement, scheduling.StageResource, scheduling.StageOffering,
		scheduling.StageLimit, scheduling.StageTopology, scheduling.StageGroup,
	} {
		out = append(out, string(s))
	}
	return out
}

// fieldError is a fault in a field of a rule.
type fieldError struct{ path, detail string }

func (e *fieldError) Error() string {
	if e.path == "" {
		return e.detail
	}
	return e.path + ": " + e.detail
}

// Validate reports everything invalid in the rule itself; the error joins one for each fault.
func (r Rule) Validate() error {
	var errs []error
	for _, f := range r.faults() {
		errs = append(errs, fmt.Errorf("ruletest: %s: %w", r.title(), f))
	}
	return errors.Join(errs...)
}

func (r *Rule) faults() []*fieldError {
	var out []*fieldError
	add := func(path, format string, args ...any) {
		out = append(out, &fieldError{path, fmt.Sprintf(format, args...)})
	}
	if _, err := labels.Parse(r.Labels); err != nil {
		add("labels", "%q: %v", r.Labels, err)
	}
	for name, places := range map[string][]Place{"landsOn": r.LandsOn, "neverOn": r.NeverOn} {
		for i, p := range places {
			at := fmt.Sprintf("%s[%d]", name, i)
			if p == (Place{}) {
				add(at, "says nothing; want one of pool, instanceType, zone, capacityType, node, labels")
			}
			if _, err := requirements.Parse(p.Labels); err != nil {
				add(at+".labels", "%v", err)
			}
		}
	}
	for name, c := range map[string]*Company{"together": r.Together, "apart": r.Apart} {
		switch {
		case c == nil:
		case c.By == "":
			add(name+".by", "want node, zone or a label key")
		case c.Most < 0:
			add(name+".most", "%d: want a number above 0", c.Most)
		case c.Most > 0 && name == "together":
			add(name+".most", "only pods that are apart have a most")
		case c.Most > 0 && c.With != "":
			add(name+".most", "it counts pods that are apart from each other; leave out most, or with")
		}
	}
	if s := r.Spread; s != nil {
		switch {
		case s.By == "":
			add("spread.by", "want node, zone or a label key")
		case s.AtLeast < 0 || s.Skew < 0 || s.AtLeast == 0 && s.Skew == 0:
			add("spread", "want atLeast or skew above 0")
		}
	}
	if d := r.AtMostPerHour; d != nil && (!(*d >= 0) || math.IsInf(*d, 0)) {
		add("atMostPerHour", "%v: want dollars, 0 or more", *d)
	}
	if f := r.Refused; f != nil {
		if f.Stage != "" && !slices.Contains(stages(), string(f.Stage)) {
			add("refused.stage", "%q: want one of %s%s", f.Stage, strings.Join(stages(), ", "), hint(string(f.Stage), stages()))
		}
		if r.Placed || r.LandsOn != nil {
			add("refused", "pods that are to be placed cannot be refused too")
		}
	}
	if r.Survives != "" {
		if _, err := survive.ParseKinds(r.Survives); err != nil {
			add("survives", "%s", err)
		}
	} else if r.MayWait {
		add("mayWait", "only pods that survive something may wait; want survives beside it")
	}
	for _, f := range r.RulesCost.faults() {
		add("rulesCost"+f.path, "%s", f.detail)
	}
	for _, f := range r.Regret.faults() {
		add("regret"+f.path, "%s", f.detail)
	}
	if (r.RulesCost != nil || r.Regret != nil) && (r.Pods != "" || r.Labels != "") {
		add("", "rulesCost and regret are not about pods; want neither pods nor labels beside them")
	}
	if r.demands() == 0 {
		add("", "the rule demands nothing; want one of placed, allOrNothing, landsOn, neverOn, together, apart, spread, atMostPerHour, refused, survives, rulesCost, regret")
	}
	slices.SortFunc(out, func(a, b *fieldError) int { return strings.Compare(a.Error(), b.Error()) })
	return out
}

func (r *Rule) demands() int {
	n := 0
	for _, has := range []bool{r.Placed, r.AllOrNothing, len(r.LandsOn) > 0, len(r.NeverOn) > 0, r.Together != nil, r.Apart != nil, r.Spread != nil, r.AtMostPerHour != nil, r.Refused != nil, r.Survives != "", r.RulesCost != nil, r.Regret != nil} {
		if has {
			n++
		}
	}
	return n
}

// hint returns the spelling that was probably meant.
func hint(word string, candidates []string) string {
	if near, ok := requirements.Nearest(word, candidates); ok {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}

// String returns the rule's name, or what it demands in words.
func (r Rule) String() string {
	if r.Name != "" {
		return r.Name
	}
	return strings.TrimSpace(r.subject() + " " + strings.Join(r.phrases(), ", "))
}

// title returns the beginning of a message about the rule.
func (r *Rule) title() string {
	if r.Name != "" {
		return fmt.Sprintf("rule %q", r.Name)
	}
	return "rule: " + r.String()
}

// subject names the pods.
func (r *Rule) subject() string {
	switch {
	case r.RulesCost != nil || r.Regret != nil:
		return "the cluster:"
	case r.Pods == "" && r.Labels == "":
		return "all pods"
	case r.Labels == "":
		return "pods " + r.Pods
	case r.Pods == "":
		return "pods with " + r.Labels
	}
	return fmt.Sprintf("pods %s with %s", r.Pods, r.Labels)
}

func (r *Rule) phrases() []string {
	var out []string
	if r.Placed {
		out = append(out, "are placed")
	}
	if r.AllOrNothing {
		out = append(out, "are all placed, or none")
	}
	if len(r.LandsOn) > 0 {
		out = append(out, "land on "+placesText(r.LandsOn))
	}
	if len(r.NeverOn) > 0 {
		out = append(out, "are never on "+placesText(r.NeverOn))
	}
	company := func(word string, c *Company) {
		if c == nil {
			return
		}
		text := fmt.Sprintf("are %s by %s", word, c.By)
		if c.With != "" {
			text += map[string]string{"together": " with ", "apart": " from "}[word] + c.With
		}
		if c.Most > 1 {
			text += fmt.Sprintf(", at most %d", c.Most)
		}
		out = append(out, text)
	}
	company("together", r.Together)
	company("apart", r.Apart)
	if s := r.Spread; s != nil {
		text := "are spread by " + s.By
		if s.AtLeast > 0 {
			text += fmt.Sprintf(" over %d at least", s.AtLeast)
		}
		if s.Skew > 0 {
			text += fmt.Sprintf(", with a skew of at most %d", s.Skew)
		}
		out = append(out, text)
	}
	if r.AtMostPerHour != nil {
		out = append(out, "cost at most "+money(*r.AtMostPerHour)+"/h")
	}
	if f := r.Refused; f != nil {
		out = append(out, "are refused"+f.text())
	}
	if r.Survives != "" {
		text := "survive the loss of any one " + r.Survives
		if r.MayWait {
			text += ", though they may wait for nodes"
		}
		out = append(out, text)
	}
	if r.RulesCost != nil {
		out = append(out, r.RulesCost.text())
	}
	if r.Regret != nil {
		out = append(out, r.Regret.text())
	}
	return out
}

func (f *Refusal) text() string {
	var parts []string
	if f.Pool != "" {
		parts = append(parts, "by pool "+f.Pool)
	}
	if f.Stage != "" {
		parts = append(parts, "for the "+string(f.Stage))
	}
	if f.Text != "" {
		parts = append(parts, fmt.Sprintf("because %q", f.Text))
	}
	if len(parts) == 0 {
		return ""
	}
	return " " + strings.Join(parts, " ")
}

func placesText(places []Place) string {
	var out []string
	for _, p := range places {
		out = append(out, p.text())
	}
	return strings.Join(out, " or ")
}

func (p *Place) text() string {
	var out []string
	for _, f := range p.fields() {
		if f.want != "" {
			out = append(out, f.name+" "+f.want)
		}
	}
	if p.Labels != "" {
		out = append(out, p.Labels)
	}
	return strings.Join(out, " and ")
}
