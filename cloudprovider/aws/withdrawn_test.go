package aws_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/cloudprovider/aws"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest"
)

// A claim that is created once more after EC2 has stopped to sell what it bought finds its machine:
// in the same process, which still has the old catalogue, after a
// restart, and after the catalogue was read anew.
func TestCreateAfterTypeWithdrawn(t *testing.T) {
	for _, c := range []struct {
		config awstest.Config
		lost   bool // the answer to the first attempt
	}{{}, {lost: true}, {config: awstest.Config{SilentReplays: true, Lag: 5 * time.Second}}, {config: awstest.Config{SilentReplays: true, Lag: 5 * time.Second}, lost: true}} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, c.config)
			p := f.provider(t)
			claim := f.ask(t, p, "stays", onDemand)
			f.cloud.SetFault(func(call awstest.Call) awstest.Fault {
				return awstest.Fault{Lost: c.lost && call.Action == "CreateFleet"}
			})
			_, err := p.Create(t.Context(), claim)
			assert.Equal(t, c.lost, err != nil)
			f.cloud.SetFault(nil)
			require.Len(t, f.cloud.Truth(), 1)
			time.Sleep(time.Minute)
			for _, c := range claim.Candidates {
				f.cloud.Withdraw(c.Type, single(c, corev1.LabelTopologyZone))
			}
			again := func(p *aws.Provider) {
				t.Helper()
				launch, err := p.Create(t.Context(), claim)
				require.NoError(t, err)
				require.Len(t, f.cloud.Truth(), 1)
				assert.True(t, strings.HasSuffix(launch.ID, f.cloud.Truth()[0].ID))
			}
			again(p)
			restarted := f.provider(t, func(o *aws.Options) { o.Undecided = nil })
			time.Sleep(time.Minute)
			again(restarted)
			time.Sleep(25 * time.Hour)
			_, err = p.Maintain(t.Context(), time.Hour)
			require.NoError(t, err)
			again(p)
		})
	}
}
