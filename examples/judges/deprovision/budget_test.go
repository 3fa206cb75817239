package deprovision_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate/fragment"
)

// kube-scheduler accepts every wave of every command of fragmented clusters with budgets, planned and carried out until nothing is found by day
// and by night. JOINERY_BUDGETS is how many clusters there are.
func TestWavesUntilQuietAreAccepted(t *testing.T) {
	count := max(1, clusters(4, 20))
	if n, err := strconv.Atoi(os.Getenv("JOINERY_BUDGETS")); err == nil {
		count = n
	}
	budgets := []string{`{nodes: "1"}`, `{nodes: "10%"}`, `{nodes: "0", schedule: "0 9 * * *", duration: 8h}, {nodes: "3"}`}
	each(t, count, func(ctx context.Context, seed uint64) (seen tally, err error) {
		o := fragment.Options{
			Nodes: []int{8, 20, 60}[(seed+seed/3)%3], Seed: seed*7919 + 13, Constrained: seed/2%2 == 0,
			Pool: strings.Replace(fragment.Pool, `{nodes: "100%"}`, budgets[seed%3], 1),
		}
		c, err := fragment.Generate(o)
		if err != nil {
			return seen, err
		}
		w := &world{manifests: c.Manifests, snapshot: c.Snapshot}
		s, at := c.Snapshot, fragment.Now()
		for quiet := 0; quiet < 2; at = at.Add(time.Hour) {
			sim, nominated, err := simulate.New(s)
			if err != nil {
				return seen, err
			}
			r, err := giveback.Make(ctx, simulate.Cluster(w.manifests, s, nominated, at), sim, nil)
			if err != nil {
				return seen, err
			}
			for i := range r.Commands {
				if s, err = w.judge(ctx, s, &r.Commands[i]); err != nil {
					return seen, fmt.Errorf("at %s, command %d, %s: %w", at, i, brief(&r.Commands[i]), err)
				}
				seen.see(&r.Commands[i])
			}
			if quiet++; len(r.Commands) > 0 {
				quiet = 0
			} else {
				at = at.Add(8 * time.Hour)
			}
		}
		return seen, nil
	})
}
