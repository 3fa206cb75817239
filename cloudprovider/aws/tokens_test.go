package aws_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest"
)

// EC2 does not know client tokens for ever. Who asks again after that, of the same provider or of one that has started since, gets what the first
// asking led to, for it stands in the tags of the machines.
func TestForgottenTokens(t *testing.T) {
	lost := func(c awstest.Call) awstest.Fault { return awstest.Fault{Lost: c.Action == "CreateFleet"} }
	dropped := func(c awstest.Call) awstest.Fault { return awstest.Fault{Dropped: c.Action == "CreateFleet"} }
	for name, test := range map[string]struct {
		fault   func(awstest.Call) awstest.Fault
		restart bool
		claims  int
		before  int // machines that run before the callers ask again
	}{
		"answer lost":                         {lost, false, 1, 1},
		"answer lost, restart":                {lost, true, 1, 1},
		"answer to many lost":                 {lost, false, 7, 7},
		"answer to many lost, restart":        {lost, true, 7, 7},
		"request never arrived":               {dropped, false, 1, 0},
		"request never arrived, restart":      {dropped, true, 1, 0},
		"all is well":                         {nil, false, 3, 3},
		"all is well, restart":                {nil, true, 3, 3},
		"request of many never arrived":       {dropped, false, 3, 0},
		"request of many and restart, thrice": {dropped, true, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, awstest.Config{Lag: 10 * time.Second, Tokens: time.Hour})
				p := f.provider(t)
				time.Sleep(31 * time.Second)
				claims := make([]cloudprovider.NodeClaim, test.claims)
				for i := range claims {
					claims[i] = f.ask(t, p, string(rune('a'+i)), onDemand)
				}
				f.cloud.SetFault(test.fault)
				for _, r := range p.CreateMany(t.Context(), claims) {
					if test.fault == nil {
						require.NoError(t, r.Err)
					} else {
						require.True(t, cloudprovider.Advise(r.Err).Unknown, "%v", r.Err)
					}
				}
				f.cloud.SetFault(nil)
				require.Len(t, f.cloud.Truth(), test.before)
				first := map[string]bool{}
				for _, m := range f.cloud.Truth() {
					first[m.ID] = true
				}
				time.Sleep(90 * time.Minute)
				if test.restart {
					p = f.provider(t, func(o *aws.Options) { o.Undecided = nil })
					time.Sleep(31 * time.Second)
				}
				ids := map[string]bool{}
				for range 2 {
					for _, r := range p.CreateMany(t.Context(), claims) {
						require.NoError(t, r.Err)
						ids[r.Launch.ID] = true
					}
				}
				assert.Len(t, ids, test.claims, "each claim has a machine of its own, the same each time")
				truth := f.cloud.Truth()
				require.Len(t, truth, test.claims, "and there are no others")
				if test.before > 0 {
					for _, m := range truth {
						assert.True(t, first[m.ID], "%s was launched by the first asking", m.ID)
					}
				}
			})
		})
	}
}

// A token whose machine has ended leads to no other one while it is remembered, whatever EC2 has forgotten; and never to two at a time.
func TestTokenOfTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{Tokens: time.Minute})
		p := f.provider(t)
		claim := f.ask(t, p, "a", onDemand)
		launch, err := p.Create(t.Context(), claim)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.NoError(t, p.Delete(t.Context(), launch.ID))
		for range 23 {
			time.Sleep(time.Hour)
			_, err = p.Create(t.Context(), claim)
			require.ErrorIs(t, err, cloudprovider.ErrNotFound)
			require.Empty(t, f.cloud.Truth())
		}
		time.Sleep(2 * time.Hour) // as the package documentation says
		_, err = p.Create(t.Context(), claim)
		require.NoError(t, err)
		require.Len(t, f.cloud.Truth(), 1)
	})
}

// A call to EC2 may take long, and launch only at its end: until all that it may have launched must show, it is not taken for nothing, be the
// answer lost, or given and the writing down of whose the machines are not.
func TestSlowFleet(t *testing.T) {
	for name, fails := range map[string]string{"answer lost": "CreateFleet", "seal lost": "CreateTags"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, awstest.Config{Lag: 25 * time.Second})
				p := f.provider(t)
				claims := []cloudprovider.NodeClaim{f.ask(t, p, "a", onDemand), f.ask(t, p, "b", onDemand)}
				f.cloud.SetFault(func(c awstest.Call) awstest.Fault {
					if c.Action == "CreateFleet" {
						return awstest.Fault{Slow: 20 * time.Second, Lost: fails == "CreateFleet"}
					}
					return awstest.Fault{Lost: c.Action == fails}
				})
				for _, r := range p.CreateMany(t.Context(), claims) {
					require.True(t, cloudprovider.Advise(r.Err).Unknown, "%v", r.Err)
				}
				f.cloud.SetFault(nil)
				time.Sleep(11 * time.Second)
				for _, r := range p.CreateMany(t.Context(), claims) {
					require.True(t, cloudprovider.Advise(r.Err).Unknown, "%v", r.Err)
				}
				time.Sleep(20 * time.Second)
				for _, r := range p.CreateMany(t.Context(), claims) {
					require.NoError(t, r.Err)
				}
				require.Len(t, f.cloud.Truth(), 2)
			})
		})
	}
}
