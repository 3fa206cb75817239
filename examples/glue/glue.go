// Package glue is the part of a provisioner that you write yourself. A pass reads the cluster and
// the cloud, repairs what went wrong, plans, and buys. It remembers nothing outside the cluster, so
// after a crash between any two lines the next pass goes on. Copy it, and put a client of your API
// server behind [Cluster]. examples/operator does more: consolidation, drift, interruptions and
// draining.
package glue

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/availability"
	"github.com/joinery-sdk/joinery/cloudprovider/lifecycle"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/gang"
)

// Record is what the cluster keeps of a node that was asked for: a custom resource with a status.
type Record struct {
	Claim    cloudprovider.NodeClaim
	Instance cloudprovider.Instance // what Create returned; the zero value until an answer has come
	Life     lifecycle.Claim        // how far it is
}

// Cluster is what a provisioner reads and writes: the cache of an informer, and a client. Answers
// are the caller's to change.
type Cluster interface {
	Snapshot(ctx context.Context) (scheduling.Snapshot, error) // all but claims, and the types of the pools
	Records(ctx context.Context) ([]Record, error)             // those that were saved and not forgotten
	Save(ctx context.Context, r Record) error
	Forget(ctx context.Context, claim string) error
	Tell(ctx context.Context, p *plan.Plan) error    // to the pods: nominated nodes, and reasons of what is unplaced
	Patch(ctx context.Context, n *corev1.Node) error // labels and taints of a node that has just joined
}

// Provisioner buys nodes. Cluster, Provider, Now and Token are required. It is not safe for
// concurrent use.
type Provisioner struct {
	Cluster  Cluster
	Provider cloudprovider.Provider
	Now      func() time.Time // the current time, for example time.Now
	Token    func() string    // never returns the same text twice
	// Groups finds the pods that run only together: pipeline.GroupsOf with the PodGroups of the
	// cluster. nil finds none.
	Groups func(pods []*corev1.Pod) []gang.Group
	Ledger availability.Ledger // what is sold out; if it is lost, it is learnt again
}

// Pass does all that can be done now. Call it whenever something has changed, every minute, and
// again after an error. While the outcome of a launch is unknown, nothing else is bought.
func (o *Provisioner) Pass(ctx context.Context) error {
	s, err := o.Cluster.Snapshot(ctx)
	if err != nil {
		return err
	}
	records, err := o.mend(ctx, s.Nodes)
	if err != nil {
		return err
	}
	for _, r := range records {
		c := pipeline.InFlight(r.Claim, r.Instance)
		c.Initialized = !r.Life.Initialized.IsZero()
		s.NodeClaims = append(s.NodeClaims, c)
	}
	for i := range s.Pools {
		if s.Pools[i].Types, err = o.Provider.InstanceTypes(ctx, s.Pools[i].NodePool); err != nil {
			return err
		}
		s.Pools[i].Types = o.Ledger.Apply(s.Pools[i].Types, o.Now())
	}
	var how plan.Options
	if o.Groups != nil {
		how.Groups = o.Groups(s.Pods)
	}
	p, err := plan.Make(ctx, s, &how)
	if err != nil {
		return err
	}
	err = o.Cluster.Tell(ctx, p)
	for _, n := range p.NewNodes() {
		r := Record{Claim: pipeline.Claim(&n, o.Token())}
		r.Life = lifecycle.Claim{Name: r.Claim.Name, Token: r.Claim.Token, Created: o.Now()}
		if saved := o.Cluster.Save(ctx, r); saved != nil { // before the cloud hears of it, so that a lost answer can be asked for again
			return errors.Join(err, saved)
		}
		err = errors.Join(err, o.launch(ctx, &r))
	}
	return err
}

// mend asks again where no answer came, registers the nodes that have joined, gives back what has
// failed, and returns what stands by token.
func (o *Provisioner) mend(ctx context.Context, nodes []*corev1.Node) (map[string]Record, error) {
	records, problem := o.Cluster.Records(ctx)
	standing, lives := map[string]Record{}, []lifecycle.Claim{}
	for _, r := range records {
		if r.Life.Instance == "" {
			problem = errors.Join(problem, o.launch(ctx, &r))
		}
		was, reports := r.Life, false
		for i, n := range nodes {
			if r.Life.Instance == "" || n.Spec.ProviderID != r.Life.Instance {
				continue
			}
			if r.Life.Registered.IsZero() { // labels and taints first: a crash in between repeats them
				nodes[i] = r.Instance.Register(r.Claim, n)
				if err := o.Cluster.Patch(ctx, nodes[i]); err != nil {
					return nil, errors.Join(problem, err)
				}
				r.Life.Registered = o.Now()
			}
			reports = slices.ContainsFunc(n.Status.Conditions, ready)
			if reports && !starting(r.Claim, nodes[i]) {
				r.Life.Initialized = cmp.Or(r.Life.Initialized, o.Now())
			}
		}
		if r.Life != was {
			problem = errors.Join(problem, o.Cluster.Save(ctx, r))
		}
		if r.Life.Name != "" { // not refused
			standing[r.Claim.Token], lives = r, append(lives, r.Life)
			lives[len(lives)-1].Ready = reports
		}
	}
	instances, err := o.Provider.List(ctx)
	if err != nil {
		return nil, errors.Join(problem, err)
	}
	decisions, _ := lifecycle.Review(lives, instances, lifecycle.Timeouts{}, o.Now())
	for _, d := range decisions {
		if d.Instance != "" {
			if err := o.Provider.Delete(ctx, d.Instance); err != nil && !errors.Is(err, cloudprovider.ErrNotFound) {
				return nil, errors.Join(problem, err)
			}
		}
		if d.Verdict != lifecycle.Orphaned && d.Verdict != lifecycle.Surplus {
			problem = errors.Join(problem, o.Cluster.Forget(ctx, d.Claim))
			delete(standing, d.Token)
		}
	}
	return standing, problem
}

// launch asks for the node of a record. What is refused for good is forgotten, and planned anew by
// the next pass; the error says that a person has to do something, or that the outcome is unknown.
func (o *Provisioner) launch(ctx context.Context, r *Record) error {
	launch, err := o.Provider.Create(ctx, r.Claim)
	if err == nil {
		o.Ledger = o.Ledger.Launched(launch, o.Now())
		r.Instance, r.Life.Instance, r.Life.Launched = launch.Instance, launch.ID, o.Now()
		return o.Cluster.Save(ctx, *r)
	}
	o.Ledger = o.Ledger.Learn(err, o.Now())
	retry := cloudprovider.Advise(err).Retry
	if retry == cloudprovider.RetrySame {
		return err
	}
	if r.Life.Name = ""; retry == cloudprovider.RetryElsewhere {
		err = nil
	}
	return errors.Join(err, o.Cluster.Forget(ctx, r.Claim.Name))
}

func ready(c corev1.NodeCondition) bool { return c.Type == "Ready" && c.Status == "True" }

// starting reports whether a node still has a startup taint of its claim: until it is gone the node
// speaks by its claim.
func starting(c cloudprovider.NodeClaim, n *corev1.Node) bool {
	return slices.ContainsFunc(c.StartupTaints, func(t corev1.Taint) bool {
		return slices.ContainsFunc(n.Spec.Taints, func(have corev1.Taint) bool { return have.MatchTaint(&t) })
	})
}
