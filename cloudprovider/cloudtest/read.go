package cloudtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider"
)

// noInstance is an id that no cloud has ever assigned.
const noInstance = "cloudtest-no-such-instance"

func readCases() []testCase {
	return []testCase{
		{"get-same", "Get and List return what Create returned: the same id, type, offering, labels, resources, claim, pool and token, and to the minute the same time of creation.", getSame},
		{"get-running", "Get and List eventually say that an instance is Running.", getRunning},
		{"get-unknown", "Get fails with ErrNotFound for an id that does not exist.", getUnknown},
		{"list-all", "List returns every instance that Create made and that still exists, each once, in ascending order of ids, however many there are.", listAll},
		{"list-owners", "List returns only instances that Create made, and each with its claim, pool and token.", listOwners},
		{"list-whole", "If List cannot read everything, it fails. It never returns a part as if it were all.", listWhole},
		{"delete-ends", "Delete ends an instance: eventually Get and Delete fail with ErrNotFound, and List leaves it out.", deleteEnds},
		{"delete-again", "Delete can be repeated: until the instance is gone it succeeds, and afterwards it fails with ErrNotFound.", deleteAgain},
		{"delete-unknown", "Delete fails with ErrNotFound for an id that does not exist.", deleteUnknown},
		{"delete-at-once", "Delete knows every instance that Create has returned, at once.", deleteAtOnce},
		{"delete-only-this", "Delete touches no other instance.", deleteOnlyThis},
		{"foreign", "No method knows machines that Create has not made: the methods fail with ErrNotFound, and Delete and Reboot leave such machines alone.", foreign},
		{"drift-new", "Drifted reports nothing for an instance that was just made and fails with ErrNotFound for an id that does not exist.", driftNew},
	}
}

func getSame(ctx context.Context, p *probe) error {
	_, launch, err := p.launch(ctx)
	if err != nil {
		return err
	}
	if err := p.settle(ctx); err != nil {
		return err
	}
	if launch.Created.IsZero() {
		return errors.New("the instance has no time of creation, so its age is unknown")
	}
	both, err := p.shown(ctx, launch.ID)
	if err != nil {
		return err
	}
	for _, method := range sortedKeys(both) {
		have := both[method]
		if want, have := describeInstance(launch.Instance), describeInstance(have); want != have {
			return fmt.Errorf("%s says %s, and Create said %s", method, have, want)
		}
		if have.Created.Sub(launch.Created).Abs() > time.Minute {
			return fmt.Errorf("%s says that it was made at %s, and Create said %s", method, have.Created, launch.Created)
		}
	}
	return nil
}

// shown returns what Get and List say of an instance, by method.
func (p *probe) shown(ctx context.Context, id string) (map[string]cloudprovider.Instance, error) {
	list, err := p.list(ctx)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(list, func(i cloudprovider.Instance) bool { return i.ID == id })
	if at < 0 {
		return nil, fmt.Errorf("List does not show %q", id)
	}
	have, err := p.get(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("Get failed: %w", err)
	}
	return map[string]cloudprovider.Instance{"Get": have, "List": list[at]}, nil
}

func getRunning(ctx context.Context, p *probe) error {
	_, launch, err := p.launch(ctx)
	if err != nil {
		return err
	}
	both, err := p.shown(ctx, launch.ID)
	if err != nil {
		return err
	}
	for _, method := range sortedKeys(both) {
		if state := both[method].State; state != cloudprovider.Running {
			return fmt.Errorf("%s says that the instance is %q (if machines take time to start, Harness.Settle must wait for it)", method, state)
		}
	}
	return nil
}

func getUnknown(ctx context.Context, p *probe) error {
	return p.unknown(ctx, "Get", func(id string) error { _, err := p.get(ctx, id); return err })
}

// unknown fails unless a call fails with ErrNotFound for ids that do not exist, among them some
// that resemble one that does, and leaves that instance alone.
func (p *probe) unknown(ctx context.Context, call string, do func(id string) error) error {
	claim, launch, err := p.launch(ctx)
	if err != nil {
		return err
	}
	list, err := p.list(ctx)
	if err != nil {
		return err
	}
	id := launch.ID
	for _, other := range []string{
		noInstance, "", id[:len(id)-1], id[1:], id + "0", id + " ", " " + id, strings.ToUpper(id), strings.ToLower(id), withZero(id), claim.Name, claim.Token,
	} {
		if slices.ContainsFunc(list, func(i cloudprovider.Instance) bool { return i.ID == other }) {
			continue
		}
		if err := mustBe(fmt.Sprintf("%s of the id %q", call, other), do(other), cloudprovider.ErrNotFound); err != nil {
			return fmt.Errorf("%w (there is %q)", err, id)
		}
	}
	return p.count(ctx, claim, 1)
}

// withZero returns an id with a zero before the number that it ends with: another text, of the same
// number.
func withZero(id string) string {
	start := strings.TrimRight(id, "0123456789")
	return start + "0" + id[len(start):]
}

// many buys as many instances as the harness wants, and returns their claims by id.
func (p *probe) many(ctx context.Context) (map[string]cloudprovider.NodeClaim, error) {
	made := map[string]cloudprovider.NodeClaim{}
	for range p.h.Many {
		claim, launch, err := p.launch(ctx)
		if err != nil {
			return nil, err
		}
		if other, ok := made[launch.ID]; ok {
			return nil, fmt.Errorf("the claims %q and %q both have the instance %q", other.Name, claim.Name, launch.ID)
		}
		made[launch.ID] = claim
	}
	return made, nil
}

// complete fails unless the list has each of the instances once, by ascending id.
func complete(list []cloudprovider.Instance, made map[string]cloudprovider.NodeClaim) error {
	seen := map[string]bool{}
	for i, inst := range list {
		if seen[inst.ID] {
			return fmt.Errorf("List shows %q twice", inst.ID)
		}
		if seen[inst.ID] = true; i > 0 && strings.Compare(list[i-1].ID, inst.ID) > 0 {
			return fmt.Errorf("List shows %q before %q", list[i-1].ID, inst.ID)
		}
	}
	missing := 0
	for id := range made {
		if !seen[id] {
			missing++
		}
	}
	if missing > 0 {
		return fmt.Errorf("%d of %d instances are missing from List", missing, len(made))
	}
	return nil
}

func listAll(ctx context.Context, p *probe) error {
	made, err := p.many(ctx)
	if err != nil {
		return err
	}
	list, err := p.list(ctx)
	if err != nil {
		return err
	}
	return complete(list, made)
}

func listOwners(ctx context.Context, p *probe) error {
	made, err := p.many(ctx)
	if err != nil {
		return err
	}
	list, err := p.list(ctx)
	if err != nil {
		return err
	}
	for _, i := range list {
		claim, mine := made[i.ID]
		switch {
		case i.Token == "" || i.Claim == "":
			return fmt.Errorf("List shows %q, of the claim %q and the token %q", i.ID, i.Claim, i.Token)
		case mine && (i.Claim != claim.Name || i.Token != claim.Token || i.Pool != claim.Pool):
			return fmt.Errorf("List shows %q of claim %q, pool %q, token %q instead of %q, %q, %q",
				i.ID, i.Claim, i.Pool, i.Token, claim.Name, claim.Pool, claim.Token)
		case !mine && strings.HasPrefix(i.Token, strings.ToLower(p.h.Prefix)+"-"+p.name):
			return fmt.Errorf("List shows %q with the token %q, which Create did not return", i.ID, i.Token)
		}
	}
	return nil
}

func listWhole(ctx context.Context, p *probe) error {
	made, err := p.many(ctx)
	if err != nil {
		return err
	}
	if err := p.settle(ctx); err != nil {
		return err
	}
	for n := 1; p.h.LoseRead != nil && n <= p.h.Many; n++ {
		restore, err := p.h.LoseRead(ctx, n)
		if err != nil {
			return fmt.Errorf("the harness did not lose a reply: %w", err)
		}
		list, err := p.h.Provider.List(ctx)
		restore()
		if err != nil {
			continue
		}
		if err := complete(list, made); err != nil {
			return fmt.Errorf("the reply to reading request %d was lost, and List succeeded: %w", n, err)
		}
	}
	for looks := range 3 * p.h.Many {
		list, err := p.h.Provider.List(newTripwire(ctx, looks))
		if err != nil {
			continue
		}
		if err := complete(list, made); err != nil {
			return fmt.Errorf("the context was cancelled in mid-call, and List succeeded: %w", err)
		}
	}
	return nil
}

func deleteEnds(ctx context.Context, p *probe) error {
	_, launch, err := p.launch(ctx)
	if err != nil {
		return err
	}
	if err := p.delete(ctx, launch.ID); err != nil {
		return fmt.Errorf("Delete failed: %w", err)
	}
	list, err := p.list(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(list, func(i cloudprovider.Instance) bool { return i.ID == launch.ID }) {
		return fmt.Errorf("List still shows %q (if it is being deleted, Harness.Settle must wait for its end)", launch.ID)
	}
	_, err = p.get(ctx, launch.ID)
	if err := mustBe("Get of a deleted instance", err, cloudprovider.ErrNotFound); err != nil {
		return err
	}
	return mustBe("Delete of an instance that is gone", p.delete(ctx, launch.ID), cloudprovider.ErrNotFound)
}

func deleteAgain(ctx context.Context, p *probe) error {
	_, launch, err := p.launch(ctx)
	if err != nil {
		return err
	}
	if err := p.delete(ctx, launch.ID); err != nil {
		return fmt.Errorf("Delete failed: %w", err)
	}
	gone := false
	for i := range 4 {
		switch err := p.h.Provider.Delete(ctx, launch.ID); {
		case errors.Is(err, cloudprovider.ErrThrottled):
		case err == nil && gone:
			return errors.New("Delete succeeded after it had said that the instance is gone")
		case err != nil && !errors.Is(err, cloudprovider.ErrNotFound):
			return fmt.Errorf("Delete number %d failed: %w", i+2, err)
		case err != nil:
			gone = true
		}
	}
	if err := p.settle(ctx); err != nil {
		return err
	}
	return mustBe("Delete of an instance that is gone", p.delete(ctx, launch.ID), cloudprovider.ErrNotFound)
}

func deleteUnknown(ctx context.Context, p *probe) error {
	return p.unknown(ctx, "Delete", func(id string) error { return p.delete(ctx, id) })
}

func deleteAtOnce(ctx context.Context, p *probe) error {
	for range 3 {
		_, launch, err := p.launch(ctx)
		if err != nil {
			return err
		}
		if err := p.delete(ctx, launch.ID); err != nil {
			return fmt.Errorf("Delete right after Create failed: %w", err)
		}
		list, err := p.list(ctx)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(list, func(i cloudprovider.Instance) bool { return i.ID == launch.ID }) {
			return fmt.Errorf("Delete right after Create had no effect: List shows %q", launch.ID)
		}
	}
	return nil
}

func deleteOnlyThis(ctx context.Context, p *probe) error {
	claim, err := p.claim(ctx)
	if err != nil {
		return err
	}
	launch, err := p.create(ctx, claim)
	if err != nil {
		return fmt.Errorf("Create failed: %w", err)
	}
	stay := map[string]cloudprovider.NodeClaim{} // by id
	for _, change := range []func(*cloudprovider.NodeClaim){
		func(c *cloudprovider.NodeClaim) { c.Name = claim.Name },
		func(c *cloudprovider.NodeClaim) {
			c.Name, c.Token = claim.Name+"-longer", claim.Token+"-longer"
		},
		func(c *cloudprovider.NodeClaim) { c.Token = claim.Token[:len(claim.Token)-1] },
		func(c *cloudprovider.NodeClaim) { c.Token = strings.ToUpper(claim.Token) },
	} {
		neighbour, err := p.claim(ctx)
		if err != nil {
			return err
		}
		change(&neighbour)
		launch, err := p.create(ctx, neighbour)
		if err != nil {
			return fmt.Errorf("Create of the claim %q with the token %q failed: %w", neighbour.Name, neighbour.Token, err)
		}
		stay[launch.ID] = neighbour
	}
	if err := p.delete(ctx, launch.ID); err != nil {
		return fmt.Errorf("Delete failed: %w", err)
	}
	for _, id := range sortedKeys(stay) {
		c := stay[id]
		if err := p.count(ctx, cloudprovider.NodeClaim{Token: c.Token}, 1); err != nil {
			return fmt.Errorf("%q of the claim %q, token %q was deleted, and so was %q of %q, %q: %w", launch.ID, claim.Name, claim.Token, id, c.Name, c.Token, err)
		}
		if i, err := p.get(ctx, id); err != nil || i.State == cloudprovider.Terminating {
			return fmt.Errorf("%q was deleted, and Get of %q of the claim %q returned the state %q, error %w", launch.ID, id, c.Name, i.State, orNil(err))
		}
		if again, err := p.create(ctx, c); err != nil || again.ID != id {
			return fmt.Errorf("%q was deleted, and Create of the claim %q returned %q instead of %q, error %w", launch.ID, c.Name, again.ID, id, orNil(err))
		}
	}
	return nil
}

func driftNew(ctx context.Context, p *probe) error {
	_, launch, err := p.launch(ctx)
	if err != nil {
		return err
	}
	if err := p.settle(ctx); err != nil {
		return err
	}
	drift, err := p.drifted(ctx, launch.ID)
	if err != nil {
		return fmt.Errorf("Drifted failed: %w", err)
	}
	if drift.Reason != "" {
		return fmt.Errorf("a new instance has drifted: %+v", drift)
	}
	return p.unknown(ctx, "Drifted", func(id string) error { _, err := p.drifted(ctx, id); return err })
}
