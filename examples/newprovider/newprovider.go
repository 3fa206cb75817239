package newprovider

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/idempotent"
	"github.com/joinery-sdk/joinery/examples/newprovider/sky"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// tokenTag is the tag of a machine that says which claim it is for.
const tokenTag = "claim-token"

// Client is the part of the cloud's client that the provider needs.
type Client interface {
	CreateMachine(ctx context.Context, m sky.Machine) (sky.Machine, error)
	GetMachine(ctx context.Context, id string) (sky.Machine, error)
	ListMachines(ctx context.Context, from string) (list []sky.Machine, next string, err error)
	DeleteMachine(ctx context.Context, id string) error
}

// Provider buys machines of the cloud. Make one by [New]; it is safe for concurrent use.
type Provider struct {
	client  Client
	types   func() []instancetypes.InstanceType
	journal *idempotent.Journal
}

// Config is what a provider needs. All fields are required. A Lag of 0 means that the cloud's list
// is never out of date.
type Config struct {
	Client Client
	// Types makes the catalogue anew for each call, because callers may change what they get. It
	// satisfies instancetypes.Validate.
	Types func() []instancetypes.InstanceType
	Store idempotent.Store
	// Lag is how long the cloud's list may be out of date.
	Lag time.Duration
	Now func() time.Time
}

// New is a provider. It calls nothing.
func New(c Config) *Provider {
	return &Provider{client: c.Client, types: c.Types, journal: &idempotent.Journal{Store: c.Store, Lag: c.Lag, Now: c.Now}}
}

// OfferOf is what the cloud calls a candidate.
func OfferOf(c cloudprovider.Candidate) sky.Offer {
	zone, _ := c.Offering.Get(corev1.LabelTopologyZone).Single()
	return sky.Offer{Size: c.Type, Zone: zone, Spot: c.Offering.Get(instancetypes.LabelCapacityType).Contains(instancetypes.CapacityTypeSpot)}
}

// offeringOf is the offering that a machine was bought as.
func offeringOf(o sky.Offer) requirements.Set {
	kind := instancetypes.CapacityTypeOnDemand
	if o.Spot {
		kind = instancetypes.CapacityTypeSpot
	}
	return requirements.MustOf(requirements.In(corev1.LabelTopologyZone, o.Zone), requirements.In(instancetypes.LabelCapacityType, kind))
}

// InstanceTypes is the catalogue. The cloud does not say beforehand what is sold out, so all of it
// is there.
func (p *Provider) InstanceTypes(ctx context.Context, _ nodepool.NodePool) ([]instancetypes.InstanceType, error) {
	return p.types(), ctx.Err()
}

// Create takes the first candidate that is not refused, once for each token.
func (p *Provider) Create(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
	return p.journal.Create(ctx, claim, p.ofToken, func(ctx context.Context) (cloudprovider.Launch, error) { return p.launch(ctx, claim) })
}

func (p *Provider) launch(ctx context.Context, claim cloudprovider.NodeClaim) (launch cloudprovider.Launch, err error) {
	choices, err := idempotent.Resolve(claim, p.types())
	if err != nil {
		return launch, err
	}
	var taints []string
	for _, t := range slices.Concat(claim.Taints, claim.StartupTaints) {
		taints = append(taints, t.ToString())
	}
	no := &cloudprovider.Error{Code: cloudprovider.ErrQuota, Op: "create", Subject: claim.Name}
	for _, c := range choices {
		// The tag comes with the machine: one that is added later is lost in a crash, and the
		// machine with it.
		m, err := p.client.CreateMachine(ctx, sky.Machine{
			Offer: OfferOf(c.Candidate), Tags: map[string]string{tokenTag: claim.Token}, Config: sky.Config{Labels: c.Labels, Taints: taints},
		})
		switch known := meaning("create", claim.Name, err); {
		case err == nil:
			return cloudprovider.Launch{Instance: c.Instance(claim, m.ID, m.Created), Refused: no.Refused, Quotas: no.Quotas}, nil
		case errors.Is(known, cloudprovider.ErrInsufficientCapacity):
			no.Code = cloudprovider.ErrInsufficientCapacity
			no.Refused = append(no.Refused, cloudprovider.Refusal{Type: c.Type.Name, Offering: c.Offering.Requirements, Detail: err.Error()})
		case errors.Is(known, cloudprovider.ErrQuota):
			no.Quotas = []cloudprovider.Quota{{Name: "machines"}} // it counts machines of every size
		default:
			return launch, known // there may be a machine: no other candidate is tried
		}
	}
	return launch, no
}

// ofToken finds the machine that a token has led to.
func (p *Provider) ofToken(ctx context.Context, token string) (cloudprovider.Instance, bool, error) {
	list, err := p.List(ctx)
	if i := slices.IndexFunc(list, func(i cloudprovider.Instance) bool { return i.Token == token }); i >= 0 {
		return list[i], true, nil
	}
	return cloudprovider.Instance{}, false, err
}

// Get reads a machine.
func (p *Provider) Get(ctx context.Context, id string) (cloudprovider.Instance, error) {
	m, err := p.client.GetMachine(ctx, id)
	if err != nil {
		return cloudprovider.Instance{}, meaning("get", id, err)
	}
	ours, err := p.instances(ctx, m)
	switch {
	case err != nil:
		return cloudprovider.Instance{}, err
	case len(ours) == 0: // not one of ours
		return cloudprovider.Instance{}, &cloudprovider.Error{Code: cloudprovider.ErrNotFound, Op: "get", Subject: id}
	}
	return ours[0], nil
}

// List reads all pages.
func (p *Provider) List(ctx context.Context) ([]cloudprovider.Instance, error) {
	var all []sky.Machine
	for from := ""; ; {
		list, next, err := p.client.ListMachines(ctx, from)
		if err != nil {
			return nil, meaning("list", "", err)
		}
		all = append(all, list...)
		if from = next; from == "" {
			return p.instances(ctx, all...)
		}
	}
}

// instances are those machines that are of our tokens, by id.
func (p *Provider) instances(ctx context.Context, list ...sky.Machine) ([]cloudprovider.Instance, error) {
	machines := make([]idempotent.Machine, len(list))
	for i, m := range list {
		machines[i] = idempotent.Machine{ID: m.ID, Token: m.Tags[tokenTag], Instance: func(claim cloudprovider.NodeClaim) cloudprovider.Instance {
			return idempotent.Describe(claim, p.types(), m.Size, offeringOf(m.Offer), m.ID, m.Created)
		}}
	}
	return p.journal.Instances(ctx, machines...)
}

// Delete ends the token and the machine.
func (p *Provider) Delete(ctx context.Context, id string) error {
	return p.journal.Delete(ctx, id, p.Get, func(ctx context.Context) error { return meaning("delete", id, p.client.DeleteMachine(ctx, id)) })
}

// Drifted finds nothing, ever: there are no settings that could change.
func (p *Provider) Drifted(ctx context.Context, id string) (cloudprovider.Drift, error) {
	_, err := p.Get(ctx, id)
	return cloudprovider.Drift{}, err
}

// codes are the replies of the cloud that are certain.
var codes = map[string]error{
	"not-found": cloudprovider.ErrNotFound, "sold-out": cloudprovider.ErrInsufficientCapacity, "quota": cloudprovider.ErrQuota,
}

// meaning translates an error of the client; what is no reply of the cloud's stays as it is, for
// the outcome of the call is not known.
func meaning(op, subject string, err error) error {
	if reply, ok := errors.AsType[*sky.Error](err); ok && codes[reply.Code] != nil {
		return &cloudprovider.Error{Code: codes[reply.Code], Op: op, Subject: subject, Err: err}
	}
	return err
}
