package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/availability"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/events"
	"github.com/joinery-sdk/joinery/cloudprovider/interruption"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
	"github.com/joinery-sdk/joinery/examples/plan"
	lib "github.com/joinery-sdk/joinery/examples/plan/report"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/gang"
)

// report is what is printed.
type report struct {
	Summary struct {
		Messages  int                `json:"messages"`
		Events    int                `json:"events"`
		Malformed int                `json:"malformed"`
		Foreign   int                `json:"foreign"`
		Idle      int                `json:"idle,omitempty"` // messages that ask for nothing
		Drained   int                `json:"drainedNodes"`
		NewNodes  int                `json:"newNodes"`
		Price     float64            `json:"pricePerHour"`
		Seconds   map[string]float64 `json:"seconds,omitempty"`
	} `json:"summary"`
	Events        []event       `json:"events"`
	Replacements  []replacement `json:"replacements"`
	Existing      []existing    `json:"existingNodes"`
	Unschedulable []string      `json:"unschedulable"`
	// Ignored are displaced pods that are not ours to place, such as those of another scheduler.
	Ignored  []lib.Ignored `json:"ignored,omitempty"`
	Problems []string      `json:"problems"`

	ours, others int // messages about nodes of the cluster, and about other machines only
}

// event is one announcement about a node of the cluster.
type event struct {
	Node         string   `json:"node"`
	Instance     string   `json:"instance"`
	Kind         string   `json:"kind"`
	At           string   `json:"at"`
	Deadline     string   `json:"deadline,omitempty"`
	Response     string   `json:"response"`
	Unavailable  string   `json:"unavailable,omitempty"`
	Pods         []string `json:"pods"`
	pods         []*corev1.Pod
	refused      *cloudprovider.Refusal
	announcement time.Time
}

// replacement is a node that would be bought.
type replacement struct {
	Name         string   `json:"name"`
	NodePool     string   `json:"nodePool"`
	InstanceType string   `json:"instanceType"`
	Zone         string   `json:"zone"`
	CapacityType string   `json:"capacityType"`
	PricePerHour float64  `json:"pricePerHour"`
	Pods         []string `json:"pods"`
}

// existing is a node that has room for some of the pods.
type existing struct {
	Name string   `json:"name"`
	Pods []string `json:"pods"`
}

// leaving are the nodes that are drained.
func (r *report) leaving() map[string]bool {
	gone := map[string]bool{}
	for _, e := range r.Events {
		if e.Response != string(interruption.Ignore) {
			gone[e.Node] = true
		}
	}
	return gone
}

// review matches messages with nodes and plans what the pods of those that leave need.
func review(s scheduling.Snapshot, groups []gang.Group, messages []events.Message) (*report, error) {
	r := &report{Events: []event{}, Replacements: []replacement{}, Existing: []existing{}, Unschedulable: []string{}, Problems: []string{}}
	r.Summary.Messages = len(messages)
	nodes := map[string]*corev1.Node{}
	for _, n := range s.Nodes {
		id := n.Spec.ProviderID
		nodes[id[strings.LastIndex(id, "/")+1:]] = n
	}
	for _, m := range messages {
		if m.Err != nil {
			r.Summary.Malformed++
			r.Problems = append(r.Problems, fmt.Sprintf("message %q: %v", m.ID, m.Err))
		}
		about := len(r.Events)
		for _, e := range m.Events {
			n, ok := nodes[e.Instance]
			if !ok || e.Instance == "" {
				r.Summary.Foreign++
				continue
			}
			r.Events = append(r.Events, describe(s, n, e))
		}
		switch {
		case m.Err != nil:
		case len(r.Events) > about:
			r.ours++
		case len(m.Events) > 0:
			r.others++
		default:
			r.Summary.Idle++
		}
	}
	slices.SortStableFunc(r.Events, func(a, b event) int {
		return cmp.Or(a.announcement.Compare(b.announcement), strings.Compare(a.Node, b.Node), strings.Compare(a.Kind, b.Kind))
	})
	r.Summary.Events = len(r.Events)
	return r, r.replace(s, groups)
}

// describe says what an event means for its node.
func describe(s scheduling.Snapshot, n *corev1.Node, e interruption.Event) event {
	out := event{
		Node: n.Name, Instance: e.Instance, Kind: string(e.Kind), At: e.At.UTC().Format(time.RFC3339), Response: string(e.Kind.Respond()), Pods: []string{},
		announcement: e.At,
	}
	if !e.Deadline.IsZero() {
		out.Deadline = e.Deadline.UTC().Format(time.RFC3339)
	}
	if e.Kind.Refuses() {
		if refused, ok := offeringOf(s, n); ok {
			refused.Detail = "taken back from " + n.Name
			out.refused, out.Unavailable = &refused, fmt.Sprintf("%s %s %s", refused.Type, n.Labels[corev1.LabelTopologyZone], n.Labels[instancetypes.LabelCapacityType])
		}
	}
	if out.Response == string(interruption.Ignore) {
		return out
	}
	for _, p := range s.Pods {
		if p.Spec.NodeName == n.Name && moves(p) {
			out.pods = append(out.pods, p)
			out.Pods = append(out.Pods, p.Namespace+"/"+p.Name)
		}
	}
	slices.Sort(out.Pods)
	return out
}

// moves says whether somebody makes the pod again elsewhere: not those of daemons, of the node
// itself, or at their end.
func moves(p *corev1.Pod) bool {
	if p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return false
	}
	if _, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return false
	}
	return !slices.ContainsFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "DaemonSet" })
}

// offeringOf finds what a node was bought as.
func offeringOf(s scheduling.Snapshot, n *corev1.Node) (cloudprovider.Refusal, bool) {
	want := requirements.FromLabels(map[string]string{
		corev1.LabelTopologyZone: n.Labels[corev1.LabelTopologyZone], instancetypes.LabelCapacityType: n.Labels[instancetypes.LabelCapacityType],
	})
	for _, pool := range s.Pools {
		for _, t := range pool.Types {
			if t.Name != n.Labels[corev1.LabelInstanceTypeStable] {
				continue
			}
			for _, offering := range t.Offerings {
				if offering.Requirements.Overlaps(want) {
					return cloudprovider.Refusal{Type: t.Name, Offering: offering.Requirements}, true
				}
			}
		}
	}
	return cloudprovider.Refusal{}, false
}

// replace plans the cluster without the nodes that leave, and without the offerings that were taken
// back.
func (r *report) replace(s scheduling.Snapshot, groups []gang.Group) error {
	gone := r.leaving()
	r.Summary.Drained = len(gone)
	var ledger availability.Ledger
	var now time.Time
	displaced := map[*corev1.Pod]bool{}
	for _, e := range r.Events {
		if e.announcement.After(now) {
			now = e.announcement
		}
		for _, p := range e.pods {
			displaced[p] = true
		}
	}
	for _, e := range r.Events {
		if e.refused != nil {
			ledger = ledger.Refuse(now, *e.refused)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	pods := s.Pods[:0:0]
	for _, p := range s.Pods {
		switch {
		case displaced[p]:
			again := p.DeepCopy()
			again.Spec.NodeName, again.Status = "", corev1.PodStatus{Phase: corev1.PodPending}
			pods = append(pods, again)
		case p.Spec.NodeName != "" && !gone[p.Spec.NodeName]:
			pods = append(pods, p)
		}
	}
	s.Pods = pods
	s.Nodes = slices.DeleteFunc(slices.Clone(s.Nodes), func(n *corev1.Node) bool { return gone[n.Name] })
	s.Pools = slices.Clone(s.Pools)
	for i := range s.Pools {
		s.Pools[i].Types = ledger.Apply(s.Pools[i].Types, now)
	}
	packed, err := plan.Make(context.Background(), s, &plan.Options{Groups: groups})
	if err != nil {
		return err
	}
	planned := packed.NewNodes()
	for i := range planned {
		n := &planned[i]
		r.Replacements = append(r.Replacements, replacement{
			Name: n.Name, NodePool: n.Pool.Name, InstanceType: n.InstanceType.Name, Zone: n.Zone, CapacityType: n.CapacityType,
			PricePerHour: n.PricePerHour, Pods: names(n.Pods),
		})
		r.Summary.Price += n.PricePerHour
	}
	r.Summary.Price = math.Round(r.Summary.Price*1e6) / 1e6
	r.Summary.NewNodes = len(planned)
	moved := map[string][]*corev1.Pod{}
	for _, b := range packed.Bindings() {
		moved[b.Node] = append(moved[b.Node], b.Pod)
	}
	for i := range packed.Problem.Existing {
		node := packed.Problem.Existing[i].Node.Name
		if pods := moved[node]; len(pods) > 0 {
			slices.SortFunc(pods, scheduling.ComparePods)
			r.Existing = append(r.Existing, existing{node, names(pods)})
		}
	}
	for _, u := range packed.Unplaced() {
		r.Unschedulable = append(r.Unschedulable, names(u.Pods)...)
	}
	slices.Sort(r.Unschedulable)
	for _, i := range packed.Ignored() {
		r.Ignored = append(r.Ignored, lib.Ignored{Pod: i.Pod.Namespace + "/" + i.Pod.Name, Why: i.Why})
	}
	return nil
}

func names(pods []*corev1.Pod) []string {
	out := make([]string, 0, len(pods))
	for _, p := range pods {
		out = append(out, p.Namespace+"/"+p.Name)
	}
	slices.Sort(out)
	return out
}

// write prints the report for people.
func (r *report) write(w io.Writer, style terminal.Style) error {
	fmt.Fprintf(w, "messages: %d; about nodes of the cluster: %d, about other machines: %d, no action needed: %d, malformed: %d\n",
		r.Summary.Messages, r.ours, r.others, r.Summary.Idle, r.Summary.Malformed)
	for _, p := range r.Problems {
		fmt.Fprintln(w, style.Warn(p))
	}
	if len(r.Events) > 0 {
		fmt.Fprintln(w)
		t := terminal.NewTable(style, "NODE", "INSTANCE", "WHAT", "ANNOUNCED", "DEADLINE", "DO", ">PODS", "UNAVAILABLE")
		for _, e := range r.Events {
			t.Row(e.Node, e.Instance, e.Kind, e.At, e.Deadline, strings.ToLower(e.Response), fmt.Sprint(len(e.Pods)), style.Dim(e.Unavailable))
		}
		if err := t.Write(w); err != nil {
			return err
		}
	}
	if len(r.Replacements) > 0 {
		fmt.Fprintln(w)
		t := terminal.NewTable(style, "REPLACEMENT", "POOL", "TYPE", "ZONE", "CAPACITY", ">PRICE/H", "PODS")
		for _, n := range r.Replacements {
			t.Row(n.Name, n.NodePool, n.InstanceType, n.Zone, n.CapacityType, terminal.Dollars(n.PricePerHour), strings.Join(n.Pods, " "))
		}
		if err := t.Write(w); err != nil {
			return err
		}
	}
	if len(r.Existing) > 0 {
		fmt.Fprintln(w)
		t := terminal.NewTable(style, "HAS ROOM", "PODS")
		for _, n := range r.Existing {
			t.Row(n.Name, strings.Join(n.Pods, " "))
		}
		if err := t.Write(w); err != nil {
			return err
		}
	}
	for _, p := range r.Unschedulable {
		fmt.Fprintln(w, style.Bad("no place for "+p))
	}
	for _, i := range r.Ignored {
		fmt.Fprintln(w, style.Dim(fmt.Sprintf("%s is not ours to place: %s", i.Pod, i.Why)))
	}
	fmt.Fprintf(w, "\n%s drained, %d bought instead   %s\n", terminal.Plural(r.Summary.Drained, "node"), r.Summary.NewNodes, terminal.Dollars(r.Summary.Price)+"/h")
	return nil
}
