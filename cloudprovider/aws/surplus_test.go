package aws_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest"
)

// A fleet may launch more machines than were asked for. What has no owner is given back, whatever goes wrong in between, and by the next
// provider if this one does not live to do it.
func TestSurplusIsGivenBack(t *testing.T) {
	lose := func(action string) func(awstest.Call) awstest.Fault {
		return func(c awstest.Call) awstest.Fault { return awstest.Fault{Lost: c.Action == action} }
	}
	drop := func(actions ...string) func(awstest.Call) awstest.Fault {
		return func(c awstest.Call) awstest.Fault {
			return awstest.Fault{Dropped: strings.Contains(strings.Join(actions, " "), c.Action)}
		}
	}
	for name, fault := range map[string]func(awstest.Call) awstest.Fault{
		"": nil, "answer lost": lose("CreateFleet"), "end not possible": drop("TerminateInstances"), "answer to end lost": lose("TerminateInstances"),
		"neither end nor seal": drop("TerminateInstances", "CreateTags"),
	} {
		for _, claims := range []int{1, 4} {
			for _, restart := range []bool{false, true} {
				t.Run(strings.Join([]string{name, map[int]string{1: "one", 4: "four"}[claims], map[bool]string{true: "restart"}[restart]}, " "), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						f := newFixture(t, awstest.Config{Lag: 5 * time.Second})
						p := f.provider(t)
						time.Sleep(time.Minute)
						list := make([]cloudprovider.NodeClaim, claims)
						for i := range list {
							list[i] = f.ask(t, p, string(rune('a'+i)), onDemand)
						}
						f.cloud.SetSurplus(3)
						f.cloud.SetFault(fault)
						first := p.CreateMany(t.Context(), list)
						require.Len(t, first, claims)
						f.cloud.SetSurplus(0)
						f.cloud.SetFault(nil)
						time.Sleep(time.Minute)
						if restart {
							p = f.provider(t, func(o *aws.Options) { o.Undecided = nil })
							time.Sleep(31 * time.Second)
						}
						ids := map[string]bool{}
						for i, r := range p.CreateMany(t.Context(), list) {
							require.NoError(t, r.Err)
							if first[i].Err == nil {
								assert.Equal(t, first[i].Launch.ID, r.Launch.ID)
							}
							ids[r.Launch.ID[strings.LastIndex(r.Launch.ID, "/")+1:]] = true
						}
						for range 2 {
							_, err := p.Maintain(t.Context(), time.Hour)
							require.NoError(t, err)
							time.Sleep(time.Minute)
						}
						require.Len(t, ids, claims)
						truth := f.cloud.Truth()
						assert.Len(t, truth, claims, "what has no owner has gone back")
						for _, m := range truth {
							assert.True(t, ids[m.ID])
						}
					})
				})
			}
		}
	}
}
