package aws_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
)

// Reservations of every kind are asked for as EC2 wants it: targeted, open, blocks, and those that their owner may take back.
func TestReservationsOfEveryKind(t *testing.T) {
	for _, name := range []string{"targeted", "open", "interruptible"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, awstest.Config{})
				f.cloud.Put(awstest.Reservation{
					ID: "cr-1", Type: "m5.large", Zone: "us-east-1a", Count: 2, Open: name == "open", Interruptible: name == "interruptible", Tags: map[string]string{"cluster": "harbour"},
				})
				c := class()
				c.CapacityReservations = []nodeclass.Term{{Tags: []nodeclass.Tag{{Key: "cluster", Values: []string{"harbour"}}}}}
				if name == "open" {
					c.CapacityReservations[0].MatchCriteria = "open"
				}
				p := f.provider(t, func(o *aws.Options) { o.Classes = aws.FixedClasses{c} })
				launch, err := p.Create(t.Context(), f.ask(t, p, "a", "karpenter.sh/capacity-type in (reserved)"))
				require.NoError(t, err)
				assert.Equal(t, "cr-1", f.cloud.Truth()[0].Reservation)
				assert.Equal(t, fmt.Sprint(name == "interruptible"), launch.Labels["karpenter.k8s.aws/capacity-reservation-interruptible"])
				time.Sleep(time.Minute)
				again, err := f.provider(t, func(o *aws.Options) { o.Classes = aws.FixedClasses{c} }).Get(t.Context(), launch.ID)
				require.NoError(t, err)
				assert.Equal(t, launch.Labels, again.Labels)
			})
		})
	}
}

// Of several reservations of one type and zone, the one that a machine runs in is told, and those that are full are refused, by every process.
func TestReservationsOfOneTypeAndZone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		for i, n := range []int{1, 2, 1} {
			f.cloud.Put(awstest.Reservation{ID: fmt.Sprintf("cr-%d", i), Type: "m5.large", Zone: "us-east-1a", Count: n, Tags: map[string]string{"cluster": "harbour"}})
		}
		c := class()
		c.CapacityReservations = byTag("cluster", "harbour")
		with := func(o *aws.Options) { o.Classes = aws.FixedClasses{c} }
		p := f.provider(t, with)
		for i := range 4 {
			if i == 2 {
				p = f.provider(t, with) // the templates exist
			}
			claim := f.ask(t, p, fmt.Sprint("n", i), "karpenter.sh/capacity-type in (reserved)")
			launch, err := p.Create(t.Context(), claim)
			require.NoError(t, err)
			truth := map[string]string{}
			used := map[string]int{}
			for _, m := range f.cloud.Truth() {
				truth[m.ID] = m.Reservation
				used[m.Reservation]++
			}
			assert.Equal(t, truth[ec2ID(launch.ID)], launch.Labels["karpenter.k8s.aws/capacity-reservation-id"])
			for _, r := range launch.Refused {
				id, _ := r.Offering.Get("karpenter.k8s.aws/capacity-reservation-id").Single()
				assert.Equal(t, map[string]int{"cr-0": 1, "cr-1": 2, "cr-2": 1}[id], used[id], "%s is refused only if it is full", id)
			}
		}
	})
}

// Somebody replaced our launch template by an equal one without its capacity reservation preference. Then machines run in open reservations,
// but every process calls them on-demand, and they do not drift.
func TestOpenReservationsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		const match = "karpenter.sh/capacity-type in (on-demand), node.kubernetes.io/instance-type in (m5.large), topology.kubernetes.io/zone in (us-east-1a)"
		p := f.provider(t)
		_, err := p.Create(t.Context(), f.ask(t, p, "a", match))
		require.NoError(t, err)
		ours := f.cloud.Templates()[0]
		fields := maps.Clone(ours.Fields)
		fields["UserData"] = base64.StdEncoding.EncodeToString([]byte(ours.UserData))
		before := len(fields)
		maps.DeleteFunc(fields, func(key, _ string) bool { return strings.HasPrefix(key, "CapacityReservationSpecification") })
		require.Less(t, len(fields), before)
		f.cloud.RemoveTemplate(ours.Name)
		f.cloud.AddTemplate(ours.Name, fields)
		f.cloud.Put(awstest.Reservation{ID: "cr-open", Type: "m5.large", Zone: "us-east-1a", Count: 1, Open: true})
		p = f.provider(t)
		launch, err := p.Create(t.Context(), f.ask(t, p, "b", match))
		require.NoError(t, err)
		require.True(t, slices.ContainsFunc(f.cloud.Truth(), func(m awstest.Machine) bool { return m.Reservation == "cr-open" }))
		time.Sleep(5 * time.Minute)
		for _, p := range []*aws.Provider{p, f.provider(t)} {
			drift, err := p.Drifted(t.Context(), launch.ID)
			require.NoError(t, err)
			assert.Empty(t, drift.Reason, drift.Detail)
			i, err := p.Get(t.Context(), launch.ID)
			require.NoError(t, err)
			assert.Equal(t, launch.Labels, i.Labels)
		}
	})
}

// A fleet names no more overrides and launch templates than EC2 takes; what is more is tried by another.
func TestLargeFleetsAreSplit(t *testing.T) {
	region, err := catalogue.Load("us-east-1")
	require.NoError(t, err)
	var types []string
	zoneOf := map[string]string{}
	for _, o := range region.Offers {
		if len(types) < 60 && len(o.Zones) >= 5 && o.OnDemand > 0 && !o.Retired && !strings.HasPrefix(o.Name, "a1.") {
			types, zoneOf[o.Name] = append(types, o.Name), o.Zones[0].Name
		}
	}
	require.Len(t, types, 60)
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{Types: types})
		for i, z := range region.Zones {
			f.cloud.Put(awstest.Subnet{ID: fmt.Sprint("subnet-more-", i), Zone: z.Name, Free: 4000, Tags: map[string]string{"cluster": "harbour"}})
		}
		c := class()
		c.CapacityReservations = byTag("cluster", "harbour")
		for i, typ := range types { // a template for each
			f.cloud.Put(awstest.Reservation{ID: fmt.Sprint("cr-", i), Type: typ, Zone: zoneOf[typ], Count: 1, Tags: map[string]string{"cluster": "harbour"}})
		}
		p := f.provider(t, func(o *aws.Options) { o.Classes = aws.FixedClasses{c} })
		claim := f.ask(t, p, "a", "karpenter.sh/capacity-type in (on-demand)")
		require.Greater(t, len(claim.Candidates), 300)
		_, err := p.Create(t.Context(), claim)
		require.NoError(t, err)
		last := claim.Candidates[len(claim.Candidates)-1]
		for _, c := range claim.Candidates[:len(claim.Candidates)-1] {
			f.cloud.SetCapacity(c.Type, single(c, "topology.kubernetes.io/zone"), "on-demand", 0)
		}
		claim.Name, claim.Token = "b", "b-token"
		launch, err := p.Create(t.Context(), claim)
		require.NoError(t, err)
		assert.Equal(t, last.Type, launch.Type, "the last one is asked for, too")
		_, err = p.Create(t.Context(), f.ask(t, p, "c", "karpenter.sh/capacity-type in (reserved)"))
		require.NoError(t, err)
		for _, fields := range f.cloud.Fleets() {
			configs, overrides := 0, 0
			for field := range fields {
				if strings.HasSuffix(field, "LaunchTemplateName") {
					configs++
				} else if strings.HasSuffix(field, ".SubnetId") {
					overrides++
				}
			}
			assert.LessOrEqual(t, configs, 50)
			assert.LessOrEqual(t, overrides, 300)
		}
	})
}

// The partition that EC2 has chosen is a label, and a machine in another group than the class means today has drifted.
func TestPlacementGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		f.cloud.Put(awstest.PlacementGroup{ID: "pg-1", Name: "racks", Strategy: "partition", Partitions: 3})
		c := class()
		c.PlacementGroup = &nodeclass.PlacementGroup{Name: "racks"}
		p := f.provider(t, func(o *aws.Options) { o.Classes = aws.FixedClasses{c} })
		launch, err := p.Create(t.Context(), f.ask(t, p, "a", onDemand))
		require.NoError(t, err)
		for _, p := range []*aws.Provider{p, f.provider(t, func(o *aws.Options) { o.Classes = aws.FixedClasses{c} })} {
			i, err := p.Get(t.Context(), launch.ID)
			require.NoError(t, err)
			assert.Contains(t, []string{"1", "2", "3"}, i.Labels["karpenter.k8s.aws/placement-group-partition"])
		}
		f.cloud.Put(awstest.PlacementGroup{ID: "pg-1", Name: "old", Strategy: "partition", Partitions: 3})
		f.cloud.Put(awstest.PlacementGroup{ID: "pg-2", Name: "racks", Strategy: "partition", Partitions: 3})
		time.Sleep(2 * time.Minute)
		drift, err := p.Drifted(t.Context(), launch.ID)
		require.NoError(t, err)
		assert.Equal(t, aws.PlacementGroupDrift, drift.Reason)
	})
}

// A class that wants nested virtualization is offered the types that can do it.
func TestNestedVirtualization(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		f.cloud.Nest("m5.large", "c5.large")
		c := class()
		c.NestedVirtualization = "enabled"
		types, err := f.provider(t, func(o *aws.Options) { o.Classes = aws.FixedClasses{c} }).InstanceTypes(t.Context(), pool())
		require.NoError(t, err)
		var names []string
		for _, it := range types {
			names = append(names, it.Name)
		}
		assert.Equal(t, []string{"c5.large", "m5.large"}, names)
	})
}

// Tags of the options and of the class are on launch templates, too, as policies about tags demand.
func TestUserTagsOnTemplates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		c := class()
		c.Tags = map[string]string{"team": "blue"}
		p := f.provider(t, func(o *aws.Options) {
			o.Classes, o.Tags = aws.FixedClasses{c}, map[string]string{"team": "red", "cost": "42"}
		})
		_, err := p.Create(t.Context(), f.ask(t, p, "a", onDemand))
		require.NoError(t, err)
		for _, tags := range []map[string]string{f.cloud.Templates()[0].Tags, f.cloud.Truth()[0].Tags} {
			assert.Subset(t, tags, map[string]string{"team": "blue", "cost": "42", "kubernetes.io/cluster/harbour": "owned"})
		}
		p = f.provider(t, func(o *aws.Options) { o.Tags = map[string]string{"cost": "43"} })
		_, err = p.Create(t.Context(), f.ask(t, p, "b", onDemand))
		require.NoError(t, err)
		assert.True(t, slices.ContainsFunc(f.cloud.Templates(), func(l awstest.Template) bool { return l.Tags["cost"] == "43" }), "tags that were changed are on templates, too")
	})
}

// Machines are bought in local zones, too, if EC2 offers types there; subnets where it offers none are told of.
func TestLocalZones(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		f.cloud.AddLocalZone("us-east-1-bos-1a", "m5.large")
		f.cloud.Put(awstest.Subnet{ID: "subnet-bos", Zone: "us-east-1-bos-1a", Free: 100, Tags: map[string]string{"cluster": "harbour"}})
		f.cloud.Put(awstest.Subnet{ID: "subnet-mia", Zone: "us-east-1-mia-1a", Free: 100, Tags: map[string]string{"cluster": "harbour"}})
		p := f.provider(t)
		claim := f.ask(t, p, "a", "karpenter.sh/capacity-type in (on-demand), topology.kubernetes.io/zone in (us-east-1-bos-1a)")
		launch, err := p.Create(t.Context(), claim)
		require.NoError(t, err)
		assert.Contains(t, launch.ID, "/us-east-1-bos-1a/")
		require.Len(t, notes(p), 2)
		assert.Contains(t, notes(p)[0], "prices in local zones are those of the region")
		assert.Contains(t, notes(p)[0], "us-east-1-bos-1a")
		assert.Contains(t, notes(p)[1], "us-east-1-mia-1a")
		assert.Equal(t, "gp2", f.cloud.Templates()[0].Fields["BlockDeviceMapping.1.Ebs.VolumeType"])
	})
}

// Zones of regions with long names are no local zones.
func TestZonesOfRegionsWithLongNames(t *testing.T) {
	for _, region := range []string{"us-gov-west-1", "eusc-de-east-1"} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, awstest.Config{Region: region})
			p := f.provider(t)
			_, err := p.Create(t.Context(), f.ask(t, p, "a", "karpenter.sh/capacity-type in (on-demand), node.kubernetes.io/instance-type in (m5.large)"))
			require.NoError(t, err)
			assert.NotContains(t, strings.Join(notes(p), "\n"), "local zones", region)
			assert.Equal(t, "gp3", f.cloud.Templates()[0].Fields["BlockDeviceMapping.1.Ebs.VolumeType"], region)
		})
	}
}

// Regions that the embedded catalogue does not have, as those of other partitions: types and zones are EC2's, prices are others' where AWS tells none,
// and a note says so.
func TestOtherPartitions(t *testing.T) {
	for _, region := range []string{"eusc-de-east-1", "cn-north-1", "ap-southeast-6"} {
		t.Run(region, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, awstest.Config{Region: region})
				priced := region == "ap-southeast-6"
				if !priced {
					f.cloud.SetFault(failing("GetProducts", "AccessDeniedException", "there is no such service here"))
				}
				p := f.provider(t)
				claim := f.ask(t, p, "a", "karpenter.sh/capacity-type in (on-demand), node.kubernetes.io/instance-type in (m5.large)")
				launch, err := p.Create(t.Context(), claim)
				require.NoError(t, err)
				assert.Equal(t, region, launch.Labels["topology.kubernetes.io/region"])
				assert.True(t, strings.HasPrefix(launch.ID, "aws:///"+region))
				assert.Contains(t, strings.Join(p.Notes(), "\n"), "no prices of region")
				types, err := p.InstanceTypes(t.Context(), pool())
				require.NoError(t, err)
				for _, it := range types {
					for _, o := range it.Offerings {
						if it.Name == "m5.large" && o.CapacityType() == "on-demand" {
							assert.InDelta(t, 0.096, o.Price, 1e-9)
							assert.Equal(t, !priced, o.List.Estimated)
						}
					}
				}
			})
		})
	}
	_, err := awstest.New(awstest.Config{Region: "eu-west-1"})
	require.NoError(t, err)
}

// China's prices are in yuan: no offering is priced in dollars beside them, whichever of them cannot be read.
func TestPricesInYuan(t *testing.T) {
	for fails, want := range map[string][]string{
		"DescribeSpotPriceHistory": {"EC2 on-demand cn-north-1"}, "GetProducts": {"EC2 us-east-1, because the region's own prices are missing"}, "": {"EC2 on-demand cn-north-1", "EC2 spot cn-north-1"},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, awstest.Config{Region: "cn-north-1"})
			f.cloud.SetFault(failing(fails, "UnauthorizedOperation", "no"))
			types, err := f.provider(t).InstanceTypes(t.Context(), pool())
			require.NoError(t, err)
			lists := map[string]bool{}
			for _, it := range types {
				for _, o := range it.Offerings {
					if o.List != nil && o.Price > 0 {
						lists[o.List.Name] = true
					}
				}
			}
			assert.ElementsMatch(t, want, slices.Collect(maps.Keys(lists)), "without %s", fails)
		})
	}
}

// Where EC2 does not tell types, those of the catalogue are used until it does, and a note says so; a region that the catalogue does not have has to wait.
func TestTypesFallBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		f.cloud.SetFault(failing("DescribeInstanceTypes", "UnauthorizedOperation", "no"))
		p := f.provider(t)
		types, err := p.InstanceTypes(t.Context(), pool())
		require.NoError(t, err)
		assert.Greater(t, len(types), 500, "all of the catalogue")
		assert.Contains(t, strings.Join(p.Notes(), "\n"), "ec2:DescribeInstanceTypes")
		f.cloud.SetFault(nil)
		time.Sleep(2 * time.Minute)
		types, err = p.InstanceTypes(t.Context(), pool())
		require.NoError(t, err)
		assert.Len(t, types, 12)
		assert.Empty(t, notes(p))
		assert.Contains(t, strings.Join(p.Notes(), "\n"), "next-large", "what was left out of EC2's answer is told")
	})
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{Region: "ap-southeast-6"})
		f.cloud.SetFault(failing("DescribeInstanceTypes", "UnauthorizedOperation", "no"))
		_, err := f.provider(t).InstanceTypes(t.Context(), pool())
		require.ErrorIs(t, err, cloudprovider.ErrUnauthorized)
	})
}
