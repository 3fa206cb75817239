package aws

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/memory"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/record"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Create launches one instance. Simultaneous calls become one fleet if their claims are launched
// alike: they have the same pool, node class, acceptable offerings, labels, taints, startup taints
// and requirements, and the same order in which capacity types first occur. Requests count only if
// they change the machine (EFA, enclaves).
func (p *Provider) Create(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
	if err := ctx.Err(); err != nil {
		return cloudprovider.Launch{}, err
	}
	claim = claim.Clone()
	return p.creates.Do(ctx, shapeOf(claim), claim)
}

// CreateMany launches an instance for each claim, with as few fleets as [Provider.Create].
func (p *Provider) CreateMany(ctx context.Context, claims []cloudprovider.NodeClaim) []cloudprovider.Result {
	own := make([]cloudprovider.NodeClaim, len(claims))
	for i, c := range claims {
		own[i] = c.Clone()
	}
	return p.createAll(ctx, own)
}

// createAll finds out what each claim's token has led to, and launches for tokens that have led to
// nothing.
func (p *Provider) createAll(ctx context.Context, claims []cloudprovider.NodeClaim) []cloudprovider.Result {
	results := make([]cloudprovider.Result, len(claims))
	todo := make([]int, len(claims))
	for i := range claims {
		todo[i] = i
	}
	for len(todo) > 0 {
		var later []int
		fresh := map[string][]int{}
		var shapes []string
		for _, i := range todo {
			c := claims[i]
			if results[i].Err = p.mayLaunch(ctx, c); results[i].Err != nil {
				continue
			}
			identity, shape := record.Identity(c), shapeOf(c)
			e, isNew := p.memory.Begin(c.Token, c.Name, identity)
			switch {
			case isNew:
				if fresh[shape] == nil {
					shapes = append(shapes, shape)
				}
				fresh[shape] = append(fresh[shape], i)
			case e.Name != c.Name || e.Identity != "" && e.Identity != identity:
				results[i].Err = invalid(fmt.Errorf("token %q belongs to claim %q, or the claim was changed", c.Token, e.Name))
			case e.State == memory.Ended:
				err := fmt.Errorf("token %q led to %q, which is gone", c.Token, e.Instance.ID)
				if e.Why != "" {
					err = fmt.Errorf("%w: %s", err, e.Why)
				}
				results[i].Err = &cloudprovider.Error{Code: cloudprovider.ErrNotFound, Err: err}
			case e.State == memory.Live:
				results[i].Launch, results[i].Err = p.again(ctx, e)
			default:
				later = append(later, i)
			}
		}
		for _, shape := range shapes {
			group := make([]cloudprovider.NodeClaim, len(fresh[shape]))
			for k, i := range fresh[shape] {
				group[k] = claims[i]
			}
			for k, r := range p.launch(ctx, group) {
				results[fresh[shape][k]] = r
			}
		}
		todo = nil
		for _, i := range later {
			if results[i].Err = p.await(ctx, claims[i].Token); results[i].Err == nil {
				todo = append(todo, i)
			}
		}
	}
	for i, r := range results {
		results[i].Err = api.Outcome("create", claims[i].Name, r.Err)
	}
	return results
}

// await waits until another call for the token has ended, or finds out the result of a fleet whose
// answer was lost.
func (p *Provider) await(ctx context.Context, token string) error {
	e, ok := p.memory.Token(token, time.Now())
	switch {
	case ok && e.State == memory.Asking:
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-e.Asked:
			return nil
		}
	case ok && e.State == memory.Open:
		return p.inTurn(ctx, e.Question, p.askAgain)
	default:
		return nil
	}
}

// again answers for a token that has led to an instance. An instance that was not read for a while
// is read again, because EC2 may have removed it.
func (p *Provider) again(ctx context.Context, e memory.Entry[*pending]) (launch cloudprovider.Launch, err error) {
	launch.Instance = e.Instance
	if time.Since(e.Checked) > p.options.Lag {
		launch.Instance, err = p.Get(ctx, e.Instance.ID)
	}
	return launch, err
}

// dry returns the error of calls that would change something.
func dry() error {
	return &cloudprovider.Error{Code: cloudprovider.ErrUnsupported, Err: errors.New("this provider only says what it would do: see DryRun")}
}

// mayLaunch fails for an invalid claim, and for an unknown token as long as nothing may be launched
// for it.
func (p *Provider) mayLaunch(ctx context.Context, c cloudprovider.NodeClaim) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.Validate(); err != nil {
		return invalid(err)
	}
	if p.options.DryRun {
		return dry()
	}
	return p.readHistory(ctx, c.Token)
}

// checkSoleLauncher returns ErrNotReady while another provider launches for this cluster, or may.
func (p *Provider) checkSoleLauncher(ctx context.Context) error {
	if p.options.Lease != nil {
		if err := p.options.Lease(ctx); err != nil {
			return &cloudprovider.Error{Code: cloudprovider.ErrNotReady, RetryAfter: 10 * time.Second, Err: fmt.Errorf("the lease is not held: %w", err)}
		}
	}
	who := p.rival.Load()
	stale := who != nil && time.Since(who.seen) >= rivalry
	blind := p.options.KarpenterTags && !p.historyRead.Load()
	if stale || blind {
		if _, err := p.List(ctx); err != nil {
			return err
		}
		who = p.rival.Load()
	}
	if who != nil {
		return &cloudprovider.Error{Code: cloudprovider.ErrNotReady, RetryAfter: time.Minute, Err: errors.New(who.reason)}
	}
	return nil
}

// rival is another provider that launches for the cluster.
type rival struct {
	reason string // which one it is, and why nothing may be launched beside it
	seen   time.Time
}

// detectRival finds others that launch machines for the cluster. One is Karpenter, which would end
// those of our machines that have its tags. Another is a provider with fleets younger than this
// provider's first fleet. Fleets older than this provider's first launch are an inheritance, not a
// rival's.
func (p *Provider) detectRival(raws []types.Instance, records *record.Reader) {
	var karpenter, other string
	for _, raw := range raws {
		rec, ours, err := records.Batch(tagsOf(raw))
		first := p.launching.Load()
		switch id := aws.ToString(raw.InstanceId); {
		case !ours && tagsOf(raw)[nodepool.LabelKey] != "" && stateOf(raw) != cloudprovider.Terminating:
			karpenter = id
		case ours && err == nil && first > 0 && rec.Created > first && !strings.HasPrefix(rec.ID, p.nonce+"-") && time.Since(rec.CreatedAt()) < rivalry:
			other = id
		}
	}
	var who *rival
	text := ""
	if karpenter != "" {
		text = fmt.Sprintf("Karpenter runs in the same cluster: it has launched instance %q, and terminates machines with its tags that have no NodeClaim", karpenter)
	}
	p.notes.set("Karpenter", text)
	if karpenter != "" && p.options.KarpenterTags {
		who = &rival{reason: text, seen: time.Now()}
	}
	text = ""
	if other != "" {
		text = fmt.Sprintf("another provider launches for the cluster: it has launched instance %q; give both the same leader election lease", other)
		who = &rival{reason: text, seen: time.Now()}
	}
	p.notes.set("rival", text)
	p.rival.Store(who)
}

// rivalry is how long a provider launches nothing after it has seen another one launch.
const rivalry = 10 * time.Minute

// readHistory finds out whether an earlier process has launched for a token, if that is undecided.
// A visible machine is known at once. Its absence is known only once enough time has passed. The
// first caller reads for all callers that wait.
func (p *Provider) readHistory(ctx context.Context, token string) error {
	_, known := p.memory.Token(token, time.Now())
	if known || p.historyRead.Load() || p.options.Undecided != nil && !p.options.Undecided(token) {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.history:
	}
	defer func() { p.history <- struct{}{} }()
	wait := time.Until(p.started.Add(p.options.Lag))
	if !p.historyRead.Load() && (wait <= 0 || !p.glanced) {
		if err := p.reconcile(ctx); err != nil {
			return err
		}
		p.glanced = true
	}
	if _, known := p.memory.Token(token, time.Now()); known || p.historyRead.Load() {
		return nil
	}
	return &cloudprovider.Error{
		Code: cloudprovider.ErrNotReady, RetryAfter: wait, Err: errors.New("an earlier process may have launched an instance for this token that does not show yet"),
	}
}

// launch makes the fleets for claims of one shape that are new, and reconciles their tokens.
func (p *Provider) launch(ctx context.Context, claims []cloudprovider.NodeClaim) []cloudprovider.Result {
	results := make([]cloudprovider.Result, len(claims))
	done := 0 // claims before this one have a result
	give := func(err error) []cloudprovider.Result {
		for i := done; i < len(claims); i++ {
			results[i].Err = err
			p.memory.Unused(claims[i].Token)
		}
		return results
	}
	s, err := p.resolvedClass(ctx, claims[0].NodeClass.Name, claims[0].Pool)
	if err != nil {
		return give(err)
	}
	offers, err := s.check(claims[0])
	if err != nil {
		return give(err)
	}
	if err := p.checkSoleLauncher(ctx); err != nil {
		return give(err)
	}
	if err := p.ensureProfile(ctx, s); err != nil {
		return give(err)
	}
	var ledger refusals
	var usable []offer
	for _, o := range offers {
		switch {
		case o.image == "":
			ledger.refuse(o, "no image of the node class boots on it")
		case slices.Contains(s.shifted, o.zone):
			ledger.refuse(o, "the zone is shifted away")
		case !o.available:
			ledger.refuse(o, "not on offer")
		default:
			usable = append(usable, o)
		}
	}
	usable = inOrder(usable)
	for done < len(claims) && len(usable) > 0 {
		ready, others, err := p.prepare(s, claims[0], usable)
		if err != nil {
			return give(err)
		}
		instances, open, err := p.fleet(ctx, s, claims[done:min(done+p.options.Window.Most, len(claims))], ready, &ledger)
		if open != nil { // the result is unknown for these, and the others were not asked for
			for range open.claims {
				results[done].Err = err
				p.memory.Lost(claims[done].Token, open)
				done++
			}
			return give(unknown(err))
		}
		if err != nil {
			return give(err)
		}
		for _, instance := range instances {
			results[done].Launch = cloudprovider.Launch{Instance: instance.Clone(), Refused: slices.Clone(ledger.refused), Quotas: slices.Clone(ledger.quotas)}
			p.memory.Launched(claims[done].Token, instance, time.Now())
			done++
		}
		if len(instances) == 0 {
			usable = others
		}
	}
	if done == len(claims) {
		return results
	}
	return give(ledger.err(offers))
}

// unknown returns an error outside the closed list, whatever its cause.
func unknown(err error) error {
	if cloudprovider.Advise(err).Unknown {
		return err
	}
	return fmt.Errorf("aws: the outcome is not known yet: %s", err) //nolint:errorlint // what it came from must not be taken for its code
}

// inTurn finds out the result of a fleet while no other caller does, unless it is known by then.
func (p *Provider) inTurn(ctx context.Context, b *pending, find func(context.Context, *pending) error) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-b.turn:
	}
	defer func() { b.turn <- struct{}{} }()
	if !p.memory.IsOpen(b.rec.ID) {
		return nil
	}
	return find(ctx, b)
}

// askAgain sends a request whose answer was lost again. With the same client token it launches
// nothing more. But EC2 knows client tokens only for a while, and would launch again after that. So
// the request is repeated within the lag. Later everything that was launched must show, so reading
// is enough.
func (p *Provider) askAgain(ctx context.Context, b *pending) error {
	if time.Since(*b.first.Load()) > p.options.Lag {
		return p.lookup(ctx, b, errors.New("too late to ask again"))
	}
	before := *b.sent.Load()
	b.stamp(time.Now())
	out, err := p.clients.EC2.CreateFleet(ctx, b.input)
	after := time.Now() // it may have launched only now
	if err == nil || cloudprovider.Advise(err).Unknown {
		b.stamp(after)
	}
	if err != nil {
		if cloudprovider.Advise(err).Unknown {
			return err
		}
		b.stamp(before)
		// EC2 refuses now. Only reading shows whether it had launched before, and only after a
		// while.
		return p.lookup(ctx, b, err)
	}
	if silent(out) {
		return p.lookup(ctx, b, errSilent)
	}
	return p.conclude(ctx, b, launched(out))
}

// reconcileByReading ends an open question without asking for machines again.
func (p *Provider) reconcileByReading(ctx context.Context, b *pending) error {
	return p.lookup(ctx, b, errors.New("it was not asked for again"))
}

// lookup finds the machines of a batch by its tag, once enough time has passed for them to show.
func (p *Provider) lookup(ctx context.Context, b *pending, why error) error {
	if time.Since(*b.sent.Load()) <= p.options.Lag {
		return fmt.Errorf("aws: the outcome shows within %s: %s", p.options.Lag, why) //nolint:errorlint // the outcome is unknown, whatever it came from
	}
	machines, err := p.machinesOf(ctx, b)
	if err != nil {
		return err
	}
	return p.conclude(ctx, b, machines)
}

// readAnswer ends an open question if reading is enough. That is so for a batch of one claim that
// led to at most one machine: it needs no seal, and nothing has to be given back.
func (p *Provider) readAnswer(ctx context.Context, b *pending) error {
	if len(b.claims) > 1 {
		return nil
	}
	machines, err := p.machinesOf(ctx, b)
	if err != nil || len(machines) > 1 {
		return err
	}
	return p.conclude(ctx, b, machines)
}

// machinesOf reads the machines that have the name of a batch.
func (p *Provider) machinesOf(ctx context.Context, b *pending) ([]machine, error) {
	list, err := p.readCluster(ctx, types.Filter{Name: aws.String("tag:" + record.KeyBatch), Values: []string{b.rec.ID}})
	if err != nil {
		return nil, unknown(err)
	}
	var machines []machine
	for _, i := range list {
		machines = append(machines, machine{id: aws.ToString(i.InstanceId), typ: string(i.InstanceType), zone: aws.ToString(i.Placement.AvailabilityZone), subnet: aws.ToString(i.SubnetId), template: tagsOf(i)["aws:ec2launchtemplate:id"]})
	}
	slices.SortFunc(machines, func(a, b machine) int { return strings.Compare(a.id, b.id) })
	return machines, nil
}

// conclude reconciles all tokens of a batch.
func (p *Provider) conclude(ctx context.Context, b *pending, machines []machine) error {
	instances, err := p.seal(ctx, b, machines)
	if err != nil {
		return unknown(err)
	}
	now := time.Now()
	for i, c := range b.claims {
		if i < len(instances) {
			p.memory.Launched(c.Token, instances[i], now)
		} else {
			p.memory.Unused(c.Token)
		}
	}
	p.memory.Close(b)
	return nil
}
