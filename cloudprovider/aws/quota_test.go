package aws

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue"
)

// What a quota blocks is what EC2 counts towards it, for every type of the catalogue: whoever shares a quota is blocked by its end, and nobody else.
func TestQuotasOfTheCatalogue(t *testing.T) {
	region, err := catalogue.Load("us-east-1")
	require.NoError(t, err)
	types, err := ec2.Types(region, ec2.Settings{})
	require.NoError(t, err)
	for _, kind := range []string{"on-demand", "spot"} {
		names := map[string]string{}
		var offers []offer
		for _, it := range types {
			for _, o := range it.Offerings {
				if o.CapacityType() == kind {
					offers = append(offers, offer{t: it, kind: kind})
					names[it.Name] = quotaOf(offers[len(offers)-1]).Name
					break
				}
			}
		}
		byName := map[string]bool{}
		for _, o := range offers {
			q := quotaOf(o)
			if byName[q.Name] {
				continue
			}
			byName[q.Name] = true
			for _, other := range offers {
				blocked := q.Blocks.Overlaps(other.t.Requirements) && kind == other.kind
				assert.Equal(t, names[other.t.Name] == q.Name, blocked, "%s and %s", q.Name, other.t.Name)
			}
		}
		want := map[string]string{"im4gn.large": names["m5.large"], "is4gen.medium": names["m5.large"], "gr6.4xlarge": names["g5.xlarge"]}
		if kind == "on-demand" {
			want["p5.48xlarge"] = names["p4d.24xlarge"]
		} else {
			want["p5.48xlarge"], want["p4d.24xlarge"] = "All P5 Spot Instance Requests", "All P4, P3 and P2 Spot Instance Requests"
		}
		for typ, name := range want {
			if have, sold := names[typ]; sold {
				assert.Equal(t, name, have, "%s %s", kind, typ)
			}
		}
	}
}

// Several errors of one offer count once: what stands in the way of all is told, however often EC2 repeats it.
func TestRepeatedErrorsOfAnOffer(t *testing.T) {
	for repeats := range 4 {
		var r refusals
		o := offer{cand: cloudprovider.Candidate{Type: "m5.large"}}
		for range repeats + 1 {
			r.note(o, api.Answer{Code: "AuthFailure.ServiceLinkedRoleCreationNotPermitted", Class: cloudprovider.ErrUnauthorized.Error(), Blame: "spot"}, "no")
		}
		assert.ErrorIs(t, r.err([]offer{o}), cloudprovider.ErrUnauthorized, "%d repeats", repeats)
	}
}
