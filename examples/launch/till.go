package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws"

	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
	"github.com/joinery-sdk/joinery/scheduling"
)

// till is a provider that asks before it spends money, and that records what has to be given back.
type till struct {
	*aws.Provider
	in    *bufio.Reader
	out   io.Writer
	yes   bool
	where string // for people

	prices map[string]float64 // by type and offering
	tokens []string           // of every claim that the provider has heard of
	shown  bool
	spent  float64            // dollars an hour
	paid   map[string]float64 // by instance
	agreed float64
}

// errDeclined is the answer no.
var errDeclined = errors.New("nothing was bought: the answer was not yes")

// write notes a claim before the provider hears of it.
func (t *till) write(c cloudprovider.NodeClaim) error {
	t.tokens = append(t.tokens, c.Token)
	return nil
}

func (t *till) price(typ string, offering fmt.Stringer) float64 {
	return t.prices[typ+" "+offering.String()]
}

// CreateMany asks before it buys, and again if what EC2 refused makes it dearer than what was
// agreed to.
func (t *till) CreateMany(ctx context.Context, claims []cloudprovider.NodeClaim) []cloudprovider.Result {
	results := make([]cloudprovider.Result, len(claims))
	cost := t.spent
	for _, c := range claims {
		cost += t.price(c.Candidates[0].Type, c.Candidates[0].Offering)
	}
	if err := t.ask(ctx, len(claims), cost); err != nil {
		for i := range results {
			results[i].Err = err
		}
		return results
	}
	done := terminal.Progress(t.out, "EC2 is launching "+terminal.Plural(len(claims), "node"))
	launches := t.Provider.CreateMany(ctx, claims)
	done()
	for i, r := range launches {
		if r.Err == nil {
			t.pay(r.Launch)
		}
		results[i] = r
	}
	return results
}

// Create is for the calls that failed by chance: they were agreed to.
func (t *till) Create(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
	launch, err := t.Provider.Create(ctx, claim)
	if err == nil {
		t.pay(launch)
	}
	return launch, err
}

func (t *till) pay(launch cloudprovider.Launch) {
	price := t.price(launch.Type, launch.Offering)
	t.spent += price
	t.paid[launch.ID] = price
}

// Delete gives back an instance that no pod can use any more.
func (t *till) Delete(ctx context.Context, id string) error {
	err := t.Provider.Delete(ctx, id)
	if err == nil {
		t.spent -= t.paid[id]
		fmt.Fprintf(t.out, "given back: %s, because after what EC2 refused no pod could use it\n", id)
	}
	return err
}

// ask wants a yes for a price per hour, unless one was given for as much.
func (t *till) ask(ctx context.Context, nodes int, cost float64) error {
	if t.yes || t.agreed > 0 && cost <= t.agreed*(1+dearer) {
		return nil
	}
	if t.agreed > 0 {
		fmt.Fprintf(t.out, "\nEC2 refused a part of the plan. Around that, it costs $%.4f/h instead of $%.4f/h.", cost, t.agreed)
	}
	fmt.Fprintf(t.out, "\nBuy %s for $%.4f/h ($%.0f/month), in %s? [y/N] ", terminal.Plural(nodes, "node"), cost-t.spent, (cost-t.spent)*730, t.where)
	type answer struct {
		text string
		err  error
	}
	got := make(chan answer, 1)
	go func() { // a reader cannot be interrupted; the program ends without it
		text, err := t.in.ReadString('\n')
		got <- answer{text, err}
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case a := <-got:
		if text := strings.ToLower(strings.TrimSpace(a.text)); text != "y" && text != "yes" {
			// As an outcome that no retry mends.
			return &cloudprovider.Error{Code: cloudprovider.ErrUnauthorized, Err: errDeclined}
		}
	}
	t.agreed = cost
	return nil
}

// giveBack takes back all that was bought and made, whatever ended the purchase, and returns the
// error to end with.
func (t *till) giveBack(ctx context.Context, why error) error {
	if _, said := errors.AsType[*inputs.ExitError](why); said { // bought, with something to say
		return why
	}
	const patience = 5 * time.Minute
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if ctx.Err() != nil {
		why = errors.New("interrupted")
		fmt.Fprintln(t.out, "\ninterrupted: giving back what was bought ...")
	}
	done := terminal.Progress(t.out, "waiting until everything that EC2 may have launched shows up, and ending it")
	ended, err := t.Withdraw(after, t.tokens)
	for try := 0; err != nil && after.Err() == nil && cloudprovider.Advise(err).Retry == cloudprovider.RetrySame && try < 20; try++ {
		time.Sleep(500 * time.Millisecond)
		var more []string
		more, err = t.Withdraw(after, t.tokens)
		ended = append(ended, more...)
	}
	done()
	slices.Sort(ended)
	for _, id := range slices.Compact(ended) {
		fmt.Fprintln(t.out, "given back:", id)
	}
	if err != nil {
		return fmt.Errorf("%w; not everything could be given back: look for machines whose tag %q is the cluster: %w", why, aws.ClusterTag, err)
	}
	if errors.Is(why, errDeclined) {
		return &inputs.ExitError{Code: inputs.ExitNotAll, Err: errDeclined}
	}
	return fmt.Errorf("%w; everything was given back", why)
}

// launchClasses are the node classes of the manifests as the provider finds them. A pool with a
// kubelet or a provider block of its own gets a class of its own; the snapshot that is returned
// refers to it.
func launchClasses(m *manifests.Snapshot, s scheduling.Snapshot) (aws.FixedClasses, scheduling.Snapshot, error) {
	var classes aws.FixedClasses
	kindOf := map[string]string{} // the kind of the class that has a name already
	s.Pools = slices.Clone(s.Pools)
	for i := range s.Pools {
		pool := &s.Pools[i].NodePool
		found, _ := m.ClassOf(*pool)
		class, ok := found.Value.(nodeclass.NodeClass)
		if ok && class.Kind == nodeclass.AutoKind {
			return nil, s, fmt.Errorf("%s %s: EKS Auto Mode buys its nodes itself, so launch cannot", pool.Kind, pool.Name)
		}
		if pool.Provider != nil {
			inline, err := nodeclass.DecodeProvider(pool.Provider)
			if err != nil {
				return nil, s, fmt.Errorf("%s %s: spec.provider: %w", pool.Kind, pool.Name, err)
			}
			class, ok = inline, true
		}
		if !ok {
			return nil, s, fmt.Errorf("%s %s: node class %q is not among the manifests: launch needs it to know which machines to buy", pool.Kind, pool.Name, pool.NodeClass.Name)
		}
		if pool.Provider == nil && pool.Kubelet == nil {
			switch kindOf[class.Name] {
			case class.Kind:
				continue
			case "":
				kindOf[class.Name] = class.Kind
				classes = append(classes, class)
				continue
			}
		}
		if k := pool.Kubelet; k != nil {
			class.Kubelet = &nodeclass.Kubelet{
				ClusterDNS: k.ClusterDNS, MaxPods: k.MaxPods, PodsPerCore: k.PodsPerCore, KubeReserved: k.KubeReserved, SystemReserved: k.SystemReserved,
				EvictionHard: k.EvictionHard, EvictionSoft: k.EvictionSoft, EvictionMaxPodGracePeriod: k.EvictionMaxPodGracePeriod,
				ImageGCHighThresholdPercent: k.ImageGCHighThresholdPercent, ImageGCLowThresholdPercent: k.ImageGCLowThresholdPercent, CPUCFSQuota: k.CPUCFSQuota,
			}
			for signal, d := range k.EvictionSoftGracePeriod {
				if class.Kubelet.EvictionSoftGracePeriod == nil {
					class.Kubelet.EvictionSoftGracePeriod = map[string]string{}
				}
				class.Kubelet.EvictionSoftGracePeriod[signal] = d.String()
			}
		}
		class.Name = strings.Trim(class.Name+"."+pool.Name, ".")
		pool.NodeClass.Name = class.Name
		classes = append(classes, class)
	}
	return classes, s, nil
}
