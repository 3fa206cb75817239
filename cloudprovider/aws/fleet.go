package aws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/launch"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/memory"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/record"
)

// refusals collects what was refused.
type refusals struct {
	refused []cloudprovider.Refusal
	quotas  []cloudprovider.Quota
	blocked *cloudprovider.Error // neither a lack of capacity nor a quota
	barred  int                  // refusals that result from it
}

// refuse records a refused offer once, and reports whether it is a new one.
func (r *refusals) refuse(o offer, detail string) bool {
	if slices.ContainsFunc(r.refused, func(have cloudprovider.Refusal) bool {
		return have.Type == o.cand.Type && have.Offering.Equal(o.cand.Offering)
	}) {
		return false
	}
	r.refused = append(r.refused, cloudprovider.Refusal{Type: o.cand.Type, Offering: o.cand.Offering, Detail: detail})
	return true
}

// note assigns one error of a fleet to an offer.
func (r *refusals) note(o offer, a api.Answer, message string) {
	detail := a.Describe(message, "ec2:CreateFleet")
	class := a.Err()
	if class == nil {
		class = cloudprovider.ErrInsufficientCapacity // it said that nothing was launched
	}
	switch {
	case errors.Is(class, cloudprovider.ErrQuota):
		q := cloudprovider.Quota{Name: a.Blame}
		switch a.Blame {
		case "vcpus":
			q = quotaOf(o)
		case "placement":
			q = spreadQuota(o)
		}
		if !slices.ContainsFunc(r.quotas, func(have cloudprovider.Quota) bool { return have.Name == q.Name }) {
			r.quotas = append(r.quotas, q)
		}
	case errors.Is(class, cloudprovider.ErrInsufficientCapacity):
		r.refuse(o, detail)
	default:
		blocked := &cloudprovider.Error{Code: class, Err: errors.New(detail)}
		if errors.Is(class, cloudprovider.ErrNotReady) {
			blocked.RetryAfter = propagation
		}
		if r.blocked == nil || passing(blocked) && !passing(r.blocked) {
			r.blocked = blocked
		}
		if a.Blame != "" && r.refuse(o, detail) {
			r.barred++
		}
	}
}

// noteAll assigns one error to the offers that the fleet was asked for with it, or else to all.
func (r *refusals) noteAll(b *pending, m machine, a api.Answer, message string) {
	of := slices.DeleteFunc(slices.Clone(b.offers), func(o offer) bool { return !b.matches(o, m) })
	if len(of) == 0 {
		of = b.offers
	}
	for _, o := range of {
		r.note(o, a, message)
	}
}

// propagation is how long a caller should wait until a new object is known everywhere.
const propagation = 5 * time.Second

// passing reports whether asking again may help.
func passing(e *cloudprovider.Error) bool {
	return errors.Is(e.Code, cloudprovider.ErrNotReady) || errors.Is(e.Code, cloudprovider.ErrThrottled)
}

// err returns why nothing was launched. Offers that were not refused by name were refused with the
// fleet, unless there was another obstacle.
func (r *refusals) err(offers []offer) error {
	nothingElseSaid := len(r.refused) == r.barred && len(r.quotas) == 0
	switch {
	case r.blocked != nil && (passing(r.blocked) || nothingElseSaid):
		return &cloudprovider.Error{Code: r.blocked.Code, RetryAfter: r.blocked.RetryAfter, Refused: r.refused, Quotas: r.quotas, Err: r.blocked.Err}
	case len(r.refused) == 0 && len(r.quotas) > 0:
		return &cloudprovider.Error{Code: cloudprovider.ErrQuota, Quotas: r.quotas, Err: errors.New(lineOf(offers))}
	}
	for _, o := range offers {
		if !slices.ContainsFunc(r.quotas, func(q cloudprovider.Quota) bool {
			return q.Blocks.IsAnything() || q.Name == quotaOf(o).Name || q.Name == spreadQuota(o).Name
		}) {
			r.refuse(o, "the fleet launched none")
		}
	}
	return &cloudprovider.Error{Code: cloudprovider.ErrInsufficientCapacity, Refused: r.refused, Quotas: r.quotas, Err: errors.New(lineOf(offers))}
}

// lineOf names the types of the offers, each once: "from types a, b, c and 4 more".
func lineOf(offers []offer) string {
	var names []string
	for _, o := range offers {
		if !slices.Contains(names, o.t.Name) {
			names = append(names, o.t.Name)
		}
	}
	const shown = 3
	if len(names) > shown {
		return fmt.Sprintf("from types %s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
	}
	return "from types " + strings.Join(names, ", ")
}

// pending is a fleet whose result is unknown or not recorded.
type pending struct {
	turn   chan struct{} // holds one token; its holder finds out the result
	rec    record.Batch
	input  *sdk.CreateFleetInput
	offers []offer
	claims []cloudprovider.NodeClaim
	ids    map[string]string // ids of the launch templates, by name; the launch writes them before it asks

	first, sent atomic.Pointer[time.Time] // when it was first and last asked for
}

// ID returns the id of the batch.
func (b *pending) ID() string { return b.rec.ID }

// stamp records when the fleet was asked for. The zero time means that it was not asked for after
// all.
func (b *pending) stamp(at time.Time) {
	b.sent.Store(&at)
	if first := b.first.Load(); first == nil || first.IsZero() || at.IsZero() {
		b.first.Store(&at)
	}
}

// fleet asks for machines for all claims at once. It returns instances for the first of them, or an
// error. If open is set, the result is unknown.
func (p *Provider) fleet(
	ctx context.Context, s *resolvedClass, claims []cloudprovider.NodeClaim, ready prepared, ledger *refusals,
) (instances []cloudprovider.Instance, open *pending, err error) {
	rec := batchOf(fmt.Sprintf("%s-%d", p.nonce, p.serial.Add(1)), s, claims)
	tags := p.tags(s, claims[0])
	own, err := p.ownTags(rec)
	if err != nil {
		return nil, nil, invalid(err)
	}
	if room := mostTags - nameTags - len(tags) - sealTags(len(claims)); len(own) > room {
		if len(claims) == 1 {
			return nil, nil, invalid(fmt.Errorf("name, token, labels and requirements of the claim take %d tags of EC2, "+
				"and there is room for %d", len(own), room))
		}
		return p.fleet(ctx, s, claims[:(len(claims)+1)/2], ready, ledger) // the caller asks for the others afterwards
	}
	unused, now := map[string]int64{}, time.Now() // machines, by subnet
	for _, o := range ready.offers {
		unused[o.subnet] = int64(len(claims))
	}
	for subnet, n := range unused {
		p.finder.Addresses().Take(subnet, n*ready.perNode, now)
	}
	defer func() {
		for subnet, n := range unused {
			p.finder.Addresses().Take(subnet, -max(n, 0)*ready.perNode, now)
		}
	}()
	b := &pending{turn: make(chan struct{}, 1), rec: rec, offers: ready.offers, claims: claims, ids: map[string]string{}}
	b.turn <- struct{}{}
	b.stamp(time.Time{})
	b.input = s.fleet(rec.ID, len(claims), ready, tags, own)
	out, err := p.ask(ctx, b, ready)
	if err != nil {
		if cloudprovider.Advise(err).Unknown && !b.sent.Load().IsZero() {
			return nil, b, err
		}
		a, message, known := api.AnswerOf(err)
		p.forget(a.Forget)
		if class := a.Err(); known && (errors.Is(class, cloudprovider.ErrQuota) || errors.Is(class, cloudprovider.ErrInsufficientCapacity)) {
			ledger.noteAll(b, machine{}, a, message)
			return nil, nil, nil // other offers may be available
		}
		return nil, nil, err
	}
	if silent(out) {
		return nil, b, errSilent
	}
	p.failures(b, out, ledger)
	if instances, err = p.seal(ctx, b, launched(out)); err != nil {
		return nil, b, unknown(err)
	}
	for _, m := range launched(out) {
		unused[m.subnet]--
	}
	return instances, nil, nil
}

// silent reports whether an answer mentions neither machines nor errors. A fleet that launches
// nothing says why. So this is an answer to a request that was sent twice: EC2 does not document
// that it repeats its first answer.
func silent(out *sdk.CreateFleetOutput) bool { return len(out.Instances) == 0 && len(out.Errors) == 0 }

var errSilent = errors.New("aws: ec2:CreateFleet reported neither machines nor errors: what it launched is read from tags when it must be visible")

// fleet returns a request for target machines of the class, with tags on everything and own tags on
// the machines.
func (s *resolvedClass) fleet(token string, target int, ready prepared, tags, own map[string]string) *sdk.CreateFleetInput {
	return launch.Request(launch.Fleet{
		Token: token, CapacityType: ready.kind, Market: ready.market, Target: target, Context: s.class.Context, Prioritized: s.ordered, Configs: ready.configs, Tags: tags, InstanceTags: own,
	})
}

// batchOf returns the record of a fleet for some claims.
func batchOf(id string, s *resolvedClass, claims []cloudprovider.NodeClaim) record.Batch {
	first := claims[0]
	rec := record.Batch{
		ID: id, Pool: first.Pool, NodeClass: first.NodeClass.Name, Requirements: first.Requirements.String(), Labels: first.Labels,
		Identity: record.Identity(first), ClassHash: record.ClassHash(s.class), Version: record.Version, Created: time.Now().Unix(),
	}
	for _, c := range claims {
		known := record.Claim{Name: c.Name, Token: c.Token}
		if identity := record.Identity(c); identity != rec.Identity {
			known.Identity = identity
		}
		rec.Claims = append(rec.Claims, known)
	}
	return rec
}

// ownTags returns the tags that only the machines of a fleet have.
func (p *Provider) ownTags(rec record.Batch) (map[string]string, error) {
	own, err := rec.Tags()
	if err == nil && len(rec.Claims) == 1 {
		own[p.options.tagClaim()] = short(rec.Claims[0].Name)
	}
	return own, err
}

// ask makes the templates and calls CreateFleet. Templates that have disappeared in between are
// made again, twice at most.
func (p *Provider) ask(ctx context.Context, b *pending, ready prepared) (*sdk.CreateFleetOutput, error) {
	for attempt := 1; ; attempt++ {
		for _, t := range ready.templates {
			id, err := p.ensureTemplate(ctx, t)
			if err != nil {
				return nil, err
			}
			b.ids[aws.ToString(t.LaunchTemplateName)] = id
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b.stamp(time.Now())
		p.launching.CompareAndSwap(0, time.Now().Unix())
		out, err := p.clients.EC2.CreateFleet(ctx, b.input)
		b.stamp(time.Now()) // a call can take long, so it may have launched only now
		if err == nil {
			return out, nil
		}
		if !cloudprovider.Advise(err).Unknown && strings.HasPrefix(api.Reason(err), "InvalidLaunchTemplate") && attempt <= 2 {
			p.templates.Forget()
			b.stamp(time.Time{})
			continue
		}
		if cloudprovider.Advise(err).Unknown && ctx.Err() == nil {
			return nil, fmt.Errorf("aws: the answer to ec2:CreateFleet was lost: %w", err)
		}
		return nil, err
	}
}

// forget drops cached answers that EC2 says are wrong now.
func (p *Provider) forget(what []string) {
	if len(what) == 0 {
		return
	}
	p.templates.Forget()
	p.profiles.Forget()
	p.finder.Forget()
	p.resolved.Forget()
}

// machine is what a fleet launched. EC2 identifies its launch template by the id.
type machine struct{ id, typ, zone, subnet, template string }

// matches reports whether the machine that was launched, or that failed, may be of this offer.
// Offers of one type and zone differ by their reservation, and each reservation has a template of
// its own.
func (b *pending) matches(o offer, m machine) bool {
	return o.t.Name == m.typ && (o.zone == m.zone || m.zone == "" && o.subnet == m.subnet) && (m.template == "" || o.reservation.ID == "" || b.ids[o.templateName] == m.template)
}

// machineOf returns what a fleet was asked for, without an id.
func machineOf(l *types.LaunchTemplateAndOverridesResponse) (m machine) {
	if l != nil && l.Overrides != nil {
		m.typ, m.zone, m.subnet = string(l.Overrides.InstanceType), aws.ToString(l.Overrides.AvailabilityZone), aws.ToString(l.Overrides.SubnetId)
	}
	if l != nil && l.LaunchTemplateSpecification != nil {
		m.template = aws.ToString(l.LaunchTemplateSpecification.LaunchTemplateId)
	}
	return m
}

func launched(out *sdk.CreateFleetOutput) []machine {
	var list []machine
	for _, set := range out.Instances {
		m := machineOf(set.LaunchTemplateAndOverrides)
		m.typ, m.zone, m.subnet = cmp.Or(string(set.InstanceType), m.typ), cmp.Or(aws.ToString(set.AvailabilityZone), m.zone), cmp.Or(aws.ToString(set.SubnetId), m.subnet)
		for _, id := range set.InstanceIds {
			m.id = id
			list = append(list, m)
		}
	}
	slices.SortFunc(list, func(a, b machine) int { return strings.Compare(a.id, b.id) })
	return list
}

// failures reads the fleet's errors.
func (p *Provider) failures(b *pending, out *sdk.CreateFleetOutput, ledger *refusals) {
	for _, f := range out.Errors {
		code, message := aws.ToString(f.ErrorCode), aws.ToString(f.ErrorMessage)
		m := machineOf(f.LaunchTemplateAndOverrides)
		answer := api.Find(api.Entry, code, message, 0)
		answer.Code = code
		p.forget(answer.Forget)
		ledger.noteAll(b, m, answer, message)
		if code == "InsufficientFreeAddressesInSubnet" && m.subnet != "" {
			p.finder.Addresses().Exhausted(m.subnet)
		}
	}
}

// seal records which machine belongs to which claim, and makes instances of the machines for the
// first of the batch's claims.
func (p *Provider) seal(ctx context.Context, b *pending, machines []machine) ([]cloudprovider.Instance, error) {
	// EC2 may launch more than it was asked for. Machines without an owner go back now, or by
	// Maintain if not all of EC2 knows them yet.
	ids := make([]string, len(machines))
	for i, m := range machines {
		ids[i] = m.id
	}
	most := min(len(machines), len(b.claims))
	p.giveBack(ctx, ids[most:])
	machines = machines[:most]
	if len(b.claims) > 1 && most > 0 {
		if err := p.writeSeal(ctx, ids[:most]); err != nil {
			return nil, err
		}
	}
	instances := make([]cloudprovider.Instance, 0, len(machines))
	for i, m := range machines {
		instance, err := p.created(b, b.claims[i], m)
		if err != nil {
			return nil, err
		}
		instances = append(instances, instance)
	}
	return instances, nil
}

func (p *Provider) writeSeal(ctx context.Context, ids []string) error {
	tags, err := record.Assign(ids).Tags()
	if err != nil {
		return err
	}
	_, err = p.clients.EC2.CreateTags(ctx, &sdk.CreateTagsInput{Resources: ids, Tags: launch.Tags(tags)})
	return err
}

// created returns a machine as the caller sees it.
func (p *Provider) created(b *pending, c cloudprovider.NodeClaim, m machine) (cloudprovider.Instance, error) {
	i := slices.IndexFunc(b.offers, func(o offer) bool { return b.matches(o, m) })
	if i < 0 {
		return cloudprovider.Instance{}, fmt.Errorf("aws: the fleet launched %q in %q, which was not asked for", m.typ, m.zone)
	}
	o := b.offers[i]
	t := bought(o.t, wantsEnclave(c.Requests))
	labels, err := cloudprovider.NodeLabels(c, o.t, o.cand.Offering)
	if err != nil {
		return cloudprovider.Instance{}, err
	}
	return cloudprovider.Instance{
		ID: memory.ProviderID(m.zone, m.id), Claim: c.Name, Pool: c.Pool, Token: c.Token, Type: m.typ, Offering: o.cand.Offering, Labels: labels,
		Capacity: t.Capacity.DeepCopy(), Allocatable: t.Allocatable(), ImageID: o.image, State: cloudprovider.Pending, Created: b.rec.CreatedAt(),
	}, nil
}
