package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/plan/capacity"
	"github.com/joinery-sdk/joinery/examples/plan/capacity/provisioning"
	"github.com/joinery-sdk/joinery/internal/strictjson"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/defaultspread"
)

// Bounds of what a client can make the server hold or work on.
const (
	mostBytes  = 4 << 20 // of a question
	mostPods   = 10_000  // of a question
	mostStates = 64      // that can be asked; older ones are gone
	mostKinds  = 64      // of pods that a state learns
	mostFixes  = 3       // that a reply names for each kind of pod
)

// server answers questions about the last states of a cluster.
type server struct {
	now    func() time.Time
	spread defaultspread.Defaults // of the pods of questions

	mu     sync.Mutex
	states map[int]*capacity.State
	kinds  map[int]int // by state: how many kinds of pods it has learned
	next   int
}

func newServer(first *capacity.State, spread defaultspread.Defaults, now func() time.Time) *server {
	return &server{now: now, spread: spread, states: map[int]*capacity.State{0: first}, kinds: map[int]int{}, next: 1}
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /ask", answering(s.ask))
	mux.HandleFunc("POST /provisioningrequest", answering(s.request))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	return mux
}

// failure is an error with the status of its reply.
type failure struct {
	status int
	err    error
}

func (f *failure) Error() string { return f.err.Error() }

func fail(status int, format string, args ...any) error {
	return &failure{status, fmt.Errorf(format, args...)}
}

// answering reads a question and writes its reply, or the error, as JSON.
func answering[Q, A any](answer func(context.Context, *Q) (A, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status, reply := http.StatusOK, any(nil)
		var q Q
		data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBytes))
		if err == nil {
			err = decode("", data, &strictjson.Decoder{}, &q)
		}
		if err != nil {
			status = http.StatusBadRequest
			if large := new(http.MaxBytesError); errors.As(err, &large) {
				status = http.StatusRequestEntityTooLarge
			}
		} else if reply, err = answer(r.Context(), &q); err != nil {
			status = http.StatusBadRequest
			if known := new(failure); errors.As(err, &known) {
				status = known.status
			}
		}
		if err != nil {
			reply = map[string]string{"error": err.Error()}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(reply) // a client that has gone hears nothing
	}
}

// decode reads JSON as strictly as files are read: a field that nothing has is an error.
func decode(at string, data []byte, decoder *strictjson.Decoder, into any) error {
	root, err := strictjson.Parse(data)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range decoder.Decode(&root, into) {
		errs = append(errs, fmt.Errorf("%s: %s", cmp.Or(strings.Trim(at+"."+p.Path, "."), "the question"), p.Detail))
	}
	return errors.Join(errs...)
}

// at is where a question is asked, and whether its answer is carried out.
type at struct {
	State  int  `json:"state"`
	Commit bool `json:"commit"`
}

type question struct {
	at
	Pods []json.RawMessage `json:"pods"`
}

// reply is an answer. The keys are an interface: they are added to, never renamed.
type reply struct {
	Answer            capacity.Kind `json:"answer"`
	Places            []place       `json:"places"`
	Nodes             []node        `json:"nodes"`
	PricePerHour      float64       `json:"pricePerHour"`
	LowerBoundPerHour float64       `json:"lowerBoundPerHour"`
	Refusals          []refusal     `json:"refusals"`
	// State is the number of the state in which the answer is carried out.
	State *int `json:"state,omitempty"`
}

type place struct {
	Pod  string `json:"pod"`
	Node string `json:"node"`
}

type node struct {
	Name         string  `json:"name"`
	Pool         string  `json:"pool"`
	InstanceType string  `json:"instanceType"`
	Zone         string  `json:"zone"`
	CapacityType string  `json:"capacityType"`
	PricePerHour float64 `json:"pricePerHour"`
}

type refusal struct {
	Pods    []string `json:"pods"`
	Reasons []string `json:"reasons"`
	// Fixes are changes that were tried, and give the pods a place.
	Fixes []string `json:"fixes"`
}

func (s *server) ask(ctx context.Context, q *question) (*reply, error) {
	if len(q.Pods) == 0 || len(q.Pods) > mostPods {
		return nil, fail(http.StatusBadRequest, "pods: there are %d, want 1 to %d", len(q.Pods), mostPods)
	}
	asked, err := manifests.Pods("pods", q.Pods)
	if err != nil {
		return nil, err
	}
	pods := s.spread.Pods(asked)
	state, err := s.state(q.at, pods)
	if err != nil {
		return nil, err
	}
	a, err := state.Ask(ctx, pods)
	if err != nil {
		if ctx.Err() != nil {
			return nil, fail(http.StatusServiceUnavailable, "%v", err)
		}
		return nil, err
	}
	return s.replied(ctx, q.at, a)
}

type requested struct {
	at
	Request      json.RawMessage   `json:"request"`
	PodTemplates []json.RawMessage `json:"podTemplates"`
}

type decided struct {
	*reply
	Conditions     []metav1.Condition      `json:"conditions"`
	AdmissionCheck provisioning.CheckState `json:"admissionCheck"`
}

func (s *server) request(ctx context.Context, q *requested) (*decided, error) {
	if len(q.Request) == 0 {
		return nil, fail(http.StatusBadRequest, "request: want a ProvisioningRequest")
	}
	var request provisioning.Request
	err := decode("request", q.Request, &strictjson.Decoder{Live: true}, &request)
	templates, faults := manifests.PodTemplates("podTemplates", q.PodTemplates)
	if err = errors.Join(err, faults); err != nil {
		return nil, err
	}
	state, err := s.state(q.at, nil)
	if err != nil {
		return nil, err
	}
	d, err := provisioning.Decide(ctx, state, &request, s.spreading(templates), s.now())
	if err != nil {
		return nil, err
	}
	if request.Spec.ProvisioningClassName == provisioning.CheckCapacity && d.Answer.Kind != capacity.Fits {
		q.Commit = false // the class buys nothing
	}
	r, err := s.replied(ctx, q.at, d.Answer)
	return &decided{r, d.Conditions, d.Check()}, err
}

// spreading are the templates with the topology spread that their pods will get.
func (s *server) spreading(templates []*corev1.PodTemplate) []*corev1.PodTemplate {
	out := slices.Clone(templates)
	for i, t := range templates {
		pod := &corev1.Pod{ObjectMeta: t.Template.ObjectMeta, Spec: t.Template.Spec}
		pod.Namespace = t.Namespace
		copied := *t
		copied.Template.Spec = s.spread.Pods([]*corev1.Pod{pod})[0].Spec
		out[i] = &copied
	}
	return out
}

// state is the state that a question asks, which learns kinds of pods that come for the first time.
func (s *server) state(q at, pods []*corev1.Pod) (*capacity.State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.states[q.State]
	if state == nil {
		return nil, fail(http.StatusGone, "state %d does not exist: want 0 or one of the last %d states", q.State, mostStates)
	}
	if len(pods) > 0 && pods[0] != nil && s.kinds[q.State] < mostKinds && !state.Knows(pods[0]) {
		state = state.Learn(pods[0])
		s.kinds[q.State]++
		s.states[q.State] = state
	}
	return state, nil
}

// keep gives a state a number, and forgets the oldest but the first.
func (s *server) keep(state *capacity.State, from int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	number := s.next
	s.next++
	s.states[number], s.kinds[number] = state, s.kinds[from]
	if old := number - mostStates; old > 0 {
		delete(s.states, old)
		delete(s.kinds, old)
	}
	return number
}

func (s *server) replied(ctx context.Context, q at, a *capacity.Answer) (*reply, error) {
	out := &reply{
		Answer: a.Kind, Places: []place{}, Nodes: []node{}, Refusals: []refusal{}, PricePerHour: a.PricePerHour, LowerBoundPerHour: a.LowerBoundPerHour,
	}
	for _, p := range a.Places {
		out.Places = append(out.Places, place{nameOf(p.Pod), p.Node})
	}
	for i := range a.Nodes {
		n := &a.Nodes[i]
		out.Nodes = append(out.Nodes, node{n.Name, n.Pool.Name, n.InstanceType.Name, n.Zone, n.CapacityType, n.PricePerHour})
	}
	for r := range a.Refusals(ctx) {
		x := refusal{Pods: []string{}, Reasons: textsOf(r.Reasons), Fixes: []string{}}
		for _, p := range r.Pods {
			x.Pods = append(x.Pods, nameOf(p))
		}
		for _, f := range r.Fixes[:min(mostFixes, len(r.Fixes))] {
			x.Fixes = append(x.Fixes, f.Text)
		}
		out.Refusals = append(out.Refusals, x)
	}
	for _, i := range a.Ignored() {
		out.Refusals = append(out.Refusals, refusal{[]string{nameOf(i.Pod)}, []string{i.Why}, []string{}})
	}
	if q.Commit && a.Kind != capacity.Impossible {
		after, err := a.Commit()
		if err != nil {
			return nil, err
		}
		number := s.keep(after, q.State)
		out.State = &number
	}
	return out, nil
}

func textsOf(reasons []scheduling.Reason) []string {
	out := make([]string, len(reasons))
	for i, r := range reasons {
		out[i] = r.String()
	}
	return out
}

func nameOf(p *corev1.Pod) string { return cmp.Or(p.Namespace, corev1.NamespaceDefault) + "/" + p.Name }
