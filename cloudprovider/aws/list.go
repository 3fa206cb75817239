package aws

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/memory"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/record"
)

// List reads all instances of the cluster that a provider made, page by page, and changes nothing.
// A machine shows as soon as its owner is recorded. Create records it. If an answer was lost or a
// process was stopped, a repeated Create records it. Maintain does so for claims whose Create is
// not repeated.
//
// List reads ended machines only at first: until one listing, made at least [Options].Lag after the
// start, has shown everything that earlier processes launched. Later it reads an ended machine only
// to learn why it is missing.
func (p *Provider) List(ctx context.Context) ([]cloudprovider.Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	list, err := p.list(ctx)
	if err != nil {
		return nil, api.Outcome("list", p.options.Cluster, err)
	}
	return list, nil
}

func (p *Provider) list(ctx context.Context) ([]cloudprovider.Instance, error) {
	for _, b := range p.overdue() {
		if err := p.inTurn(ctx, b, p.readAnswer); err != nil {
			return nil, err
		}
	}
	r, err := p.readAll(ctx)
	if err != nil {
		return nil, err
	}
	return p.report(ctx, r)
}

// reconcile finds the owner of machines without a recorded one, records it, and ends machines that
// have none. Others can change tags, and readers of EC2 lag. So a machine is ended only if it had
// no owner in two readings at least a lag apart. What cannot be ended now is ended by the next
// call.
func (p *Provider) reconcile(ctx context.Context) error {
	if p.options.DryRun {
		return nil
	}
	for _, b := range p.overdue() {
		if err := p.inTurn(ctx, b, p.reconcileByReading); err != nil {
			return err
		}
	}
	r, err := p.readAll(ctx)
	if err != nil {
		return err
	}
	for _, id := range sortedKeys(r.unsealed) {
		if err := p.writeSeal(ctx, r.unsealed[id]); err != nil {
			return err
		}
		r.records.Sealed(id, r.unsealed[id])
	}
	r.unsealed = nil
	p.giveBack(ctx, r.condemned)
	_, err = p.report(ctx, r)
	return err
}

// overdue returns the fleets without an answer whose machines must show by now.
func (p *Provider) overdue() []*pending {
	return slices.DeleteFunc(p.memory.Opens(), func(b *pending) bool { return time.Since(*b.sent.Load()) <= p.options.Lag })
}

// reading is what EC2 shows at a moment.
type reading struct {
	at      time.Time
	raws    []types.Instance
	records *record.Reader
	missing map[string]bool          // machines that were launched before and no longer show
	shifted []cloudprovider.Instance // remembered machines in zones that are shifted away

	// Unknown machines of concluded fleets: those that an earlier process launched, and those that
	// EC2 launched beyond what was asked for.
	unsealed  map[string]record.Seal // owners of machines of batches that were not sealed, by the batch's key
	surplus   map[string]bool        // machines without an owner
	condemned []string               // those of them that run, and had no owner a lag ago
}

// readAll reads the machines of the cluster.
func (p *Provider) readAll(ctx context.Context) (reading, error) {
	r := reading{at: time.Now(), missing: map[string]bool{}}
	before := r.at.Add(-p.options.Lag)
	var shifted, others []string
	var filters []types.Filter
	var err error
	known := p.historyRead.Load()
	if known {
		if shifted, others, err = p.shiftedZones(ctx); err != nil {
			return r, err
		}
	}
	for _, e := range p.memory.Living() {
		if slices.Contains(shifted, memory.Zone(e.Instance.ID)) {
			r.shifted = append(r.shifted, e.Instance)
		} else if e.Instance.Created.Before(before) && e.Checked.Before(before) {
			r.missing[memory.Bare(e.Instance.ID)] = true
		}
	}
	if known {
		filters = []types.Filter{{Name: aws.String("instance-state-name"), Values: []string{"pending", "running", "shutting-down", "stopping", "stopped"}}}
		if len(shifted) > 0 {
			// A filter needs a value, even if all zones are shifted away.
			filters = append(filters, types.Filter{Name: aws.String("availability-zone"), Values: append(others, "none")})
		}
	}
	if r.raws, err = p.readCluster(ctx, filters...); err != nil {
		return r, err
	}
	for _, raw := range r.raws {
		delete(r.missing, aws.ToString(raw.InstanceId))
	}
	if known {
		ended, err := p.readBy(ctx, "instance-id", sortedKeys(r.missing)...)
		if err != nil {
			return r, err
		}
		r.raws = append(r.raws, ended...)
	}
	r.records = readerOf(r.raws)
	p.detectRival(r.raws, r.records)
	p.classify(&r)
	return r, nil
}

// report makes instances of what was read, and remembers them. As long as a batch has no seal, it
// is not known which claims its machines are for.
func (p *Provider) report(ctx context.Context, r reading) ([]cloudprovider.Instance, error) {
	var list []cloudprovider.Instance
	var unreadable []string
	for _, raw := range r.raws {
		if r.surplus[aws.ToString(raw.InstanceId)] {
			continue
		}
		f, err := p.recall(ctx, raw, r.records)
		if errors.Is(err, errUnreadable) {
			unreadable = append(unreadable, err.Error())
		} else if err != nil {
			return nil, err
		}
		delete(r.missing, aws.ToString(raw.InstanceId))
		why, ended := endOf(raw)
		if f != nil {
			p.memory.Learn(f.instance, f.identity, r.at)
		}
		if ended {
			p.memory.MarkTerminated(aws.ToString(raw.InstanceId), why, r.at)
			continue
		}
		if f != nil {
			list = append(list, f.instance.Clone())
		}
	}
	p.notes.set("unreadable", strings.Join(unreadable, "; "))
	for _, bare := range sortedKeys(r.missing) {
		p.memory.MarkTerminated(bare, "it shows no more", r.at)
	}
	if !r.at.Before(p.started.Add(p.options.Lag)) && len(r.unsealed) == 0 {
		p.historyRead.Store(true)
	}
	list = append(list, r.shifted...)
	slices.SortFunc(list, func(a, b cloudprovider.Instance) int { return strings.Compare(a.ID, b.ID) })
	return list, nil
}

// classify finds the owners of unknown machines, once all machines of their batches must show.
func (p *Provider) classify(r *reading) {
	r.unsealed, r.surplus = map[string]record.Seal{}, map[string]bool{}
	unsealed := map[string][]string{}
	claims := map[string]int{}
	for _, raw := range r.raws {
		bare, tags := aws.ToString(raw.InstanceId), tagsOf(raw)
		rec, ours, err := r.records.Batch(tags)
		if err != nil || !ours || rec.Key(tags) == "" || r.at.Sub(rec.CreatedAt()) <= p.options.Lag || p.memory.IsOpen(rec.ID) {
			continue
		}
		if _, known := p.memory.Of(bare); known {
			continue
		}
		seal, sealed, err := r.records.Seal(rec, tags)
		if err != nil {
			continue // recall reports it
		}
		at := slices.Index(seal, bare)
		if owned := sealed && at >= 0 && at < len(rec.Claims); owned {
			continue
		}
		answered := slices.ContainsFunc(rec.Claims, func(c record.Claim) bool {
			e, ok := p.memory.Token(c.Token, r.at)
			return ok && e.State >= memory.Live
		})
		if sealed || answered {
			// No caller learns of a machine before its batch is sealed, and the seal does not have
			// this one.
			r.surplus[bare] = true
		} else {
			id := rec.Key(tags)
			unsealed[id], claims[id] = append(unsealed[id], bare), len(rec.Claims)
		}
	}
	for _, id := range sortedKeys(unsealed) {
		seal := record.Assign(unsealed[id])
		for _, bare := range seal[min(len(seal), claims[id]):] {
			r.surplus[bare] = true
		}
		if claims[id] > 1 {
			r.unsealed[id] = seal[:min(len(seal), claims[id])]
		}
	}
	r.condemned = p.suspect(r)
}

// suspect records which machines have no owner now. It returns those that run and already had none
// a lag ago.
func (p *Provider) suspect(r *reading) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	since := make(map[string]time.Time, len(r.surplus))
	var condemned []string
	for _, raw := range r.raws {
		id := aws.ToString(raw.InstanceId)
		if !r.surplus[id] || stateOf(raw) == cloudprovider.Terminating {
			continue
		}
		first, known := p.ownerless[id]
		if !known {
			first = r.at
		}
		since[id] = first
		if r.at.Sub(first) > p.options.Lag {
			condemned = append(condemned, id)
		}
	}
	p.ownerless = since
	return condemned
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
