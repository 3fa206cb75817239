package newprovider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/idempotent"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Provider keeps its machines in a file, cloud.json. Make one by [New]; it is safe for concurrent use within one process.
type Provider struct {
	path    string
	types   []byte     // the catalogue as JSON: each caller gets a copy of its own by decoding it
	mu      sync.Mutex // held during each call: reading, changing and writing the file is one step
	journal idempotent.Journal
}

// State is the content of the file. Whoever edits it plays the cloud. A machine without a token was not made by us.
type State struct {
	Made     int                               // so many ids have been given away
	Limit    int                               // this many machines at a time; 0 = no limit
	SoldOut  []string                          // offerings that cannot be had, as Candidate.String writes them
	Machines map[string]cloudprovider.Instance // by id
	Journal  map[string]idempotent.Entry       // by token
}

// New is a provider with its file in a folder that exists. The catalogue must satisfy instancetypes.Validate.
func New(folder string, types []instancetypes.InstanceType) (*Provider, error) {
	data, err := json.Marshal(types)
	if err != nil {
		return nil, fmt.Errorf("newprovider: %w", err)
	}
	p := &Provider{path: filepath.Join(folder, "cloud.json"), types: data}
	p.journal.Store, p.journal.Now = p, time.Now
	return p, nil
}

// Edit changes the file, unless the change fails or the context is done.
func (p *Provider) Edit(ctx context.Context, change func(*State) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("newprovider: %w", err)
	}
	state := State{Machines: map[string]cloudprovider.Instance{}, Journal: map[string]idempotent.Entry{}}
	data, err := os.ReadFile(p.path)
	if err == nil {
		err = json.Unmarshal(data, &state)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("newprovider: %w", err)
	}
	if err := change(&state); err != nil {
		return err
	}
	if data, err = json.MarshalIndent(state, "", "  "); err != nil {
		return fmt.Errorf("newprovider: %w", err)
	}
	// A crash leaves the old file or the new one, never half of one.
	if err = os.WriteFile(p.path+".new", data, 0o600); err == nil {
		err = os.Rename(p.path+".new", p.path)
	}
	if err != nil {
		return fmt.Errorf("newprovider: %w", err)
	}
	return nil
}

// Update keeps the journal in the same file.
func (p *Provider) Update(ctx context.Context, change func(map[string]idempotent.Entry) error) error {
	return p.Edit(ctx, func(s *State) error { return change(s.Journal) })
}

// InstanceTypes is the catalogue; what is sold out is there, but not available.
func (p *Provider) InstanceTypes(ctx context.Context, _ nodepool.NodePool) ([]instancetypes.InstanceType, error) {
	var types []instancetypes.InstanceType
	err := p.Edit(ctx, func(s *State) error {
		if err := json.Unmarshal(p.types, &types); err != nil {
			return fmt.Errorf("newprovider: %w", err)
		}
		for i, t := range types {
			for j, o := range t.Offerings {
				types[i].Offerings[j].Available = o.Available && !slices.Contains(s.SoldOut, cloudprovider.Candidate{Type: t.Name, Offering: o.Requirements}.String())
			}
		}
		return nil
	})
	return types, err
}

// Create takes the first candidate that is not sold out, once for each token.
func (p *Provider) Create(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
	return p.journal.Create(ctx, claim, func(ctx context.Context) (cloudprovider.Launch, error) { return p.launch(ctx, claim) }, p.ofToken)
}

func (p *Provider) launch(ctx context.Context, claim cloudprovider.NodeClaim) (launch cloudprovider.Launch, err error) {
	types, err := p.InstanceTypes(ctx, nodepool.NodePool{})
	if err != nil {
		return launch, err
	}
	choices, err := idempotent.Resolve(claim, types)
	if err != nil {
		return launch, err
	}
	err = p.Edit(ctx, func(s *State) error {
		for _, c := range choices {
			switch {
			case slices.Contains(s.SoldOut, c.Candidate.String()):
				launch.Refused = append(launch.Refused, cloudprovider.Refusal{Type: c.Type.Name, Offering: c.Offering.Requirements, Detail: "sold out"})
			case s.Limit > 0 && len(s.Machines) >= s.Limit:
				return &cloudprovider.Error{Code: cloudprovider.ErrQuota, Op: "create", Subject: claim.Name, Refused: launch.Refused, Quotas: []cloudprovider.Quota{
					{Name: "machines", Used: int64(len(s.Machines)), Limit: int64(s.Limit)},
				}}
			default:
				s.Made++
				launch.Instance = c.Instance(claim, fmt.Sprintf("file://m-%08d", s.Made), time.Now().UTC())
				s.Machines[launch.ID] = launch.Clone()
				return nil
			}
		}
		return &cloudprovider.Error{Code: cloudprovider.ErrInsufficientCapacity, Op: "create", Subject: claim.Name, Refused: launch.Refused}
	})
	return launch, err
}

// ofToken finds the machine that a token has led to.
func (p *Provider) ofToken(ctx context.Context, token string) (cloudprovider.Instance, bool, error) {
	list, err := p.List(ctx)
	if i := slices.IndexFunc(list, func(m cloudprovider.Instance) bool { return m.Token == token }); i >= 0 {
		return list[i], true, nil
	}
	return cloudprovider.Instance{}, false, err
}

// find looks a machine up and does something with it.
func (p *Provider) find(ctx context.Context, op, id string, do func(*State, cloudprovider.Instance)) error {
	return p.Edit(ctx, func(s *State) error {
		machine, ok := s.Machines[id]
		if !ok || machine.Token == "" {
			return &cloudprovider.Error{Code: cloudprovider.ErrNotFound, Op: op, Subject: id}
		}
		do(s, machine)
		return nil
	})
}

// Get reads the machine from the file.
func (p *Provider) Get(ctx context.Context, id string) (machine cloudprovider.Instance, err error) {
	err = p.find(ctx, "get", id, func(_ *State, m cloudprovider.Instance) { machine = m })
	return machine, err
}

// List reads all machines from the file.
func (p *Provider) List(ctx context.Context) (list []cloudprovider.Instance, err error) {
	err = p.Edit(ctx, func(s *State) error {
		for _, id := range slices.Sorted(maps.Keys(s.Machines)) {
			if m := s.Machines[id]; m.Token != "" {
				list = append(list, m)
			}
		}
		return nil
	})
	return list, err
}

// Delete takes the machine out of the file; its token stays.
func (p *Provider) Delete(ctx context.Context, id string) error {
	if _, err := p.journal.Delete(ctx, id); err != nil {
		return err
	}
	return p.find(ctx, "delete", id, func(s *State, _ cloudprovider.Instance) { delete(s.Machines, id) })
}

// Drifted finds nothing, ever: there are no settings that could change.
func (p *Provider) Drifted(ctx context.Context, id string) (cloudprovider.Drift, error) {
	return cloudprovider.Drift{}, p.find(ctx, "drifted", id, func(*State, cloudprovider.Instance) {})
}
