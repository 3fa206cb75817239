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
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Provider keeps its machines in a file, cloud.json. Make one by [New]; it is safe for concurrent use within one process.
type Provider struct {
	path  string
	types []byte     // the catalogue as JSON: each caller gets a copy of its own by decoding it
	mu    sync.Mutex // held during each call: reading, changing and writing the file is one step
}

// State is the content of the file. Whoever edits it plays the cloud.
type State struct {
	Made     int                                // so many ids have been given away
	Limit    int                                // this many machines at a time; 0 = no limit
	SoldOut  []string                           // offerings that cannot be had, as Candidate.String writes them
	Machines map[string]cloudprovider.Instance  // by id
	Claims   map[string]cloudprovider.NodeClaim // by token, for good
	Tokens   map[string]string                  // the id that a token led to, for good
}

// New is a provider with its file in a folder that exists. The catalogue must satisfy instancetypes.Validate.
func New(folder string, types []instancetypes.InstanceType) (*Provider, error) {
	data, err := json.Marshal(types)
	if err != nil {
		return nil, fmt.Errorf("newprovider: %w", err)
	}
	return &Provider{path: filepath.Join(folder, "cloud.json"), types: data}, nil
}

// Edit changes the file, unless the change fails or the context is done.
func (p *Provider) Edit(ctx context.Context, change func(*State) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("newprovider: %w", err)
	}
	state := State{Machines: map[string]cloudprovider.Instance{}, Claims: map[string]cloudprovider.NodeClaim{}, Tokens: map[string]string{}}
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

// Create takes the first candidate that is not sold out.
func (p *Provider) Create(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
	outcome := cloudprovider.Error{Op: "create", Subject: claim.Name}
	fail := func(code, why error) error {
		outcome.Code, outcome.Err = code, why
		return &outcome
	}
	if err := claim.Validate(); err != nil {
		return cloudprovider.Launch{}, fail(cloudprovider.ErrInvalidSpec, err)
	}
	types, err := p.InstanceTypes(ctx, nodepool.NodePool{})
	if err != nil {
		return cloudprovider.Launch{}, err
	}
	var launch cloudprovider.Launch
	err = p.Edit(ctx, func(s *State) error {
		// The token comes first: whatever else has changed since, its instance is the answer.
		if id, ok := s.Tokens[claim.Token]; ok {
			var alive bool
			switch launch.Instance, alive = s.Machines[id]; {
			case !s.Claims[claim.Token].Equal(claim):
				return fail(cloudprovider.ErrInvalidSpec, fmt.Errorf("token %q is of another claim", claim.Token))
			case !alive:
				return fail(cloudprovider.ErrNotFound, fmt.Errorf("%q was deleted", id))
			}
			return nil
		}
		var made *cloudprovider.Instance
		for i, c := range claim.Candidates { // all of them are looked at: one that does not exist spoils the claim
			at := slices.IndexFunc(types, func(t instancetypes.InstanceType) bool { return t.Name == c.Type })
			if at < 0 || !slices.ContainsFunc(types[at].Offerings, func(o instancetypes.Offering) bool { return o.Requirements.Equal(c.Offering) }) {
				return fail(cloudprovider.ErrInvalidSpec, fmt.Errorf("candidates[%d]: %s is not in the catalogue", i, c))
			}
			labels, err := cloudprovider.NodeLabels(claim, types[at], c.Offering)
			switch {
			case err != nil:
				return fail(cloudprovider.ErrInvalidSpec, err)
			case made != nil:
			case slices.Contains(s.SoldOut, c.String()):
				outcome.Refused = append(outcome.Refused, cloudprovider.Refusal{Type: c.Type, Offering: c.Offering, Detail: "sold out"})
			default:
				made = &cloudprovider.Instance{
					Claim: claim.Name, Pool: claim.Pool, Token: claim.Token, Type: c.Type, Offering: c.Offering, Labels: labels,
					Capacity: types[at].Capacity, Allocatable: types[at].Allocatable(), State: cloudprovider.Running, Created: time.Now().UTC(),
				}
			}
		}
		switch {
		case made == nil:
			return fail(cloudprovider.ErrInsufficientCapacity, nil)
		case s.Limit > 0 && len(s.Machines) >= s.Limit:
			outcome.Quotas = []cloudprovider.Quota{{Name: "machines", Used: int64(len(s.Machines)), Limit: int64(s.Limit)}}
			return fail(cloudprovider.ErrQuota, nil)
		}
		s.Made++
		made.ID = fmt.Sprintf("file://m-%08d", s.Made)
		s.Machines[made.ID], s.Claims[claim.Token], s.Tokens[claim.Token] = *made, claim, made.ID
		launch = cloudprovider.Launch{Instance: made.Clone(), Refused: outcome.Refused}
		return nil
	})
	if err != nil {
		return cloudprovider.Launch{}, err
	}
	return launch, nil
}

// find looks a machine up and does something with it.
func (p *Provider) find(ctx context.Context, op, id string, do func(*State, cloudprovider.Instance)) error {
	return p.Edit(ctx, func(s *State) error {
		machine, ok := s.Machines[id]
		if !ok {
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
			list = append(list, s.Machines[id])
		}
		return nil
	})
	return list, err
}

// Delete takes the machine out of the file; its token stays.
func (p *Provider) Delete(ctx context.Context, id string) error {
	return p.find(ctx, "delete", id, func(s *State, _ cloudprovider.Instance) { delete(s.Machines, id) })
}

// Drifted finds nothing, ever: there are no settings that could change.
func (p *Provider) Drifted(ctx context.Context, id string) (cloudprovider.Drift, error) {
	return cloudprovider.Drift{}, p.find(ctx, "drifted", id, func(*State, cloudprovider.Instance) {})
}
