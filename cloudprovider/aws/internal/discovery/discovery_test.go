package discovery_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/discovery"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/label"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
	"github.com/joinery-sdk/joinery/requirements"
)

func finder(t *testing.T, config awstest.Config) (*awstest.Cloud, *discovery.Finder) {
	t.Helper()
	awstest.Begin()
	cloud, err := awstest.New(config)
	require.NoError(t, err)
	clients, err := api.Connect(t.Context(), cloud.API())
	require.NoError(t, err)
	return cloud, discovery.NewFinder(clients)
}

func tag(key string, values ...string) nodeclass.Term {
	return nodeclass.Term{Tags: []nodeclass.Tag{{Key: key, Values: values}}}
}

func TestFilters(t *testing.T) {
	got := discovery.Filters([]nodeclass.Term{
		{IDs: []string{"subnet-b"}},
		{Tags: []nodeclass.Tag{{Key: "team", Values: []string{"*"}}, {Key: "tier", Values: []string{"a", "b*"}}}},
		{IDs: []string{"subnet-a", "subnet-b"}},
		{Names: []string{"web"}},
		{},
	}, "subnet-id", "tag:Name")
	var text []string
	for _, filters := range got {
		line := ""
		for _, f := range filters {
			line += fmt.Sprintf("%s=%v;", aws.ToString(f.Name), f.Values)
		}
		text = append(text, line)
	}
	assert.Equal(t, []string{"subnet-id=[subnet-a subnet-b];", "tag-key=[team];tag:tier=[a b*];", "tag:Name=[web];"}, text)
}

func TestSubnets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud, f := finder(t, awstest.Config{Page: 2})
		for name, test := range map[string]struct {
			terms []nodeclass.Term
			want  int
		}{
			"by tag":            {[]nodeclass.Term{tag("cluster", "harbour")}, 6},
			"tag key":           {[]nodeclass.Term{tag("cluster")}, 6},
			"wildcard":          {[]nodeclass.Term{tag("Name", "private-?-0")}, 3},
			"comma list":        {[]nodeclass.Term{tag("Name", "private-0-0", "private-1-1")}, 2},
			"terms are or":      {[]nodeclass.Term{tag("Name", "private-0-0"), {IDs: []string{"subnet-11", "subnet-00"}}}, 2},
			"tags are and":      {[]nodeclass.Term{{Tags: []nodeclass.Tag{{Key: "cluster", Values: []string{"harbour"}}, {Key: "Name", Values: []string{"private-2-*"}}}}}, 2},
			"name":              {[]nodeclass.Term{{Names: []string{"private-2-1"}}}, 1},
			"none":              {[]nodeclass.Term{tag("cluster", "other")}, 0},
			"no terms, nothing": {nil, 0},
		} {
			got, err := f.Subnets(t.Context(), test.terms)
			require.NoError(t, err)
			assert.Len(t, got, test.want, name)
			for i := 1; i < len(got); i++ {
				assert.Less(t, got[i-1].ID, got[i].ID)
			}
		}
		// Remembered for a minute, and the answer is the caller's own.
		term := []nodeclass.Term{tag("cluster", "harbour")}
		before := cloud.Calls("EC2.DescribeSubnets")
		got, err := f.Subnets(t.Context(), term)
		require.NoError(t, err)
		got[0].ID = "changed"
		got, err = f.Subnets(t.Context(), term)
		require.NoError(t, err)
		assert.Equal(t, "subnet-00", got[0].ID)
		assert.Equal(t, before, cloud.Calls("EC2.DescribeSubnets"))
		time.Sleep(time.Minute)
		_, err = f.Subnets(t.Context(), term)
		require.NoError(t, err)
		assert.Greater(t, cloud.Calls("EC2.DescribeSubnets"), before)
	})
}

func TestManyAskOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud, f := finder(t, awstest.Config{})
		var group sync.WaitGroup
		for range 50 {
			group.Go(func() {
				_, err := f.Subnets(t.Context(), []nodeclass.Term{tag("cluster", "harbour")})
				assert.NoError(t, err)
			})
		}
		group.Wait()
		assert.Equal(t, 1, cloud.Calls("EC2.DescribeSubnets"))
	})
}

func TestCacheWaitsNoLongerThanItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := discovery.NewCache[int](time.Minute)
		asking, release := make(chan struct{}), make(chan struct{})
		go func() {
			_, _ = c.Get(t.Context(), "k", func(context.Context) (int, error) { close(asking); <-release; return 1, nil })
		}()
		<-asking
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := c.Get(ctx, "k", nil)
		require.ErrorIs(t, err, context.Canceled)
		close(release)
	})
}

func TestGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud, f := finder(t, awstest.Config{})
		cloud.Put(awstest.Group{ID: "sg-a", Name: "cluster-a", Tags: map[string]string{"kubernetes.io/cluster/harbour": "owned", "cluster": "harbour"}})
		cloud.Put(awstest.Group{ID: "sg-b", Name: "cluster-b", Tags: map[string]string{"kubernetes.io/cluster/harbour": "owned"}})
		got, err := f.Groups(t.Context(), []nodeclass.Term{tag("cluster", "harbour"), {Names: []string{"shared"}}, {IDs: []string{"sg-b"}}})
		require.NoError(t, err)
		var ids []string
		for _, g := range got {
			ids = append(ids, g.ID)
		}
		assert.Equal(t, []string{"sg-1", "sg-2", "sg-a", "sg-b"}, ids)
		assert.Equal(t, []bool{false, false, true, true}, []bool{got[0].OfCluster, got[1].OfCluster, got[2].OfCluster, got[3].OfCluster})
	})
}

func images(t *testing.T, f *discovery.Finder, class nodeclass.NodeClass) []discovery.Image {
	t.Helper()
	got, err := f.Images(t.Context(), class, "1.33")
	require.NoError(t, err)
	return got
}

// pick is the image that a type with some labels boots from.
func pick(list []discovery.Image, labels string) string {
	i, _ := discovery.ImageFor(list, requirements.MustParse(labels))
	return i.ID
}

const (
	plain  = "kubernetes.io/arch=%s, !" + label.GPUCount + ", !" + label.AcceleratorCount
	gpu    = "kubernetes.io/arch=amd64, " + label.GPUCount + "=1, !" + label.AcceleratorCount
	neuron = "kubernetes.io/arch=amd64, !" + label.GPUCount + ", " + label.AcceleratorCount + "=1"
)

func TestImagesOfFamilies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, f := finder(t, awstest.Config{})
		for _, test := range []struct {
			family                ec2.Family
			amd, arm, gpu, neuron string
		}{
			{ec2.AL2023, "ami-al2023x86", "ami-al2023arm", "ami-al2023gpu", "ami-al2023neuron"},
			{ec2.Bottlerocket, "ami-rocketx86", "ami-rocketarm", "ami-rocketgpu", "ami-rocketx86"},
			{ec2.Windows2022, "ami-windows2022", "", "ami-windows2022", "ami-windows2022"},
			{ec2.Ubuntu, "ami-ubuntux86", "", "ami-ubuntux86", "ami-ubuntux86"},
		} {
			list := images(t, f, nodeclass.NodeClass{Family: test.family})
			assert.Equal(t, test.amd, pick(list, fmt.Sprintf(plain, "amd64")), test.family)
			assert.Equal(t, test.arm, pick(list, fmt.Sprintf(plain, "arm64")), test.family)
			assert.Equal(t, test.gpu, pick(list, gpu), test.family)
			assert.Equal(t, test.neuron, pick(list, neuron), test.family)
		}
		_, old := finder(t, awstest.Config{Version: "1.32"})
		list, err := old.Images(t.Context(), nodeclass.NodeClass{Family: ec2.AL2}, "1.32")
		require.NoError(t, err)
		assert.Equal(t, []string{"ami-al2x86", "ami-al2arm", "ami-al2gpu", "ami-al2gpu"}, []string{
			pick(list, fmt.Sprintf(plain, "amd64")), pick(list, fmt.Sprintf(plain, "arm64")), pick(list, gpu), pick(list, neuron),
		})
		for _, version := range []string{"1.33", "1.36"} {
			_, err = f.Images(t.Context(), nodeclass.NodeClass{Family: ec2.AL2}, version)
			require.ErrorIs(t, err, cloudprovider.ErrInvalidSpec)
			require.ErrorContains(t, err, "AL2 up to Kubernetes 1.32")
		}
		// A release of Ubuntu that is newer than this library is selected by its parameter.
		_, err = f.Images(t.Context(), nodeclass.NodeClass{Family: ec2.Ubuntu}, "1.99")
		require.ErrorContains(t, err, "amiSelectorTerms")
		newer := nodeclass.NodeClass{Family: ec2.Ubuntu, AMIs: []nodeclass.Term{{SSMParameter: "/aws/service/canonical/ubuntu/eks/22.04/1.33/stable/current/amd64/hvm/ebs-gp2/ami-id"}}}
		assert.Equal(t, "ami-ubuntuold", pick(images(t, f, newer), fmt.Sprintf(plain, "amd64")))
		_, err = f.Images(t.Context(), nodeclass.NodeClass{Family: ec2.Custom}, "1.33")
		require.ErrorIs(t, err, cloudprovider.ErrInvalidSpec)
		_, err = f.Images(t.Context(), nodeclass.NodeClass{Family: ec2.AL2023}, "1.99")
		require.ErrorIs(t, err, cloudprovider.ErrNotReady)
		require.ErrorContains(t, err, "Kubernetes 1.99")
	})
}

func TestAlias(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, f := finder(t, awstest.Config{})
		latest := images(t, f, nodeclass.NodeClass{Family: ec2.AL2023, AMIs: []nodeclass.Term{{Alias: "al2023@latest"}}})
		assert.Equal(t, "ami-al2023arm", pick(latest, fmt.Sprintf(plain, "arm64")))
		pinned := images(t, f, nodeclass.NodeClass{Family: ec2.AL2023, AMIs: []nodeclass.Term{{Alias: "al2023@v20260301"}}})
		require.Len(t, pinned, 1, "only this variant is published")
		assert.Equal(t, "ami-al2023x86", pinned[0].ID)
	})
}

func TestParameterPaths(t *testing.T) {
	for _, test := range []struct {
		family        ec2.Family
		version, want string
	}{
		{ec2.AL2023, "latest", "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/standard/recommended/image_id"},
		{ec2.AL2023, "v20260301", "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/standard/amazon-eks-node-al2023-x86_64-standard-1.33-v20260301/image_id"},
		{ec2.AL2, "v20260301", "/aws/service/eks/optimized-ami/1.33/amazon-linux-2/amazon-eks-node-1.33-v20260301/image_id"},
		{ec2.Bottlerocket, "v1.20.0", "/aws/service/bottlerocket/aws-k8s-1.33/x86_64/1.20.0/image_id"},
		{ec2.Windows2025, "latest", "/aws/service/ami-windows-latest/Windows_Server-2025-English-Core-EKS_Optimized-1.33/image_id"},
		{ec2.Ubuntu, "latest", "/aws/service/canonical/ubuntu/eks/24.04/1.33/stable/current/amd64/hvm/ebs-gp3/ami-id"},
	} {
		assert.Equal(t, test.want, discovery.Parameters(test.family, "1.33", test.version)[0].Path)
	}
	assert.Empty(t, discovery.Parameters(ec2.Custom, "1.33", "latest"))
}

func TestImagesBySelector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud, f := finder(t, awstest.Config{})
		own := nodeclass.NodeClass{Family: ec2.AL2023, AMIs: []nodeclass.Term{tag("cluster", "harbour")}}
		list := images(t, f, own)
		require.Len(t, list, 2, "the newest for each architecture")
		assert.Equal(t, "ami-newx8664", pick(list, fmt.Sprintf(plain, "amd64")))
		assert.Equal(t, "ami-newarm64", pick(list, fmt.Sprintf(plain, "arm64")))

		// Deprecated images come last, however new.
		cloud.Put(awstest.Image{ID: "ami-newest", Name: "own-newest", Arch: "x86_64", Created: time.Now().Add(240 * 24 * time.Hour), Deprecated: time.Now().Add(-time.Hour), Tags: map[string]string{"cluster": "harbour"}})
		time.Sleep(10 * time.Minute)
		assert.Equal(t, "ami-newx8664", pick(images(t, f, own), fmt.Sprintf(plain, "amd64")))

		byName := nodeclass.NodeClass{Family: ec2.AL2023, AMIs: []nodeclass.Term{{Names: []string{"own-old-*"}}, {IDs: []string{"ami-newarm64"}}}}
		list = images(t, f, byName)
		assert.Equal(t, "ami-oldx8664", pick(list, fmt.Sprintf(plain, "amd64")))
		assert.Equal(t, "ami-newarm64", pick(list, fmt.Sprintf(plain, "arm64")))

		none := nodeclass.NodeClass{Family: ec2.AL2023, AMIs: []nodeclass.Term{{Names: []string{"own-old-*"}, Owners: []string{"999999999999"}}}}
		assert.Empty(t, images(t, f, none), "of another owner")

		cloud.SetParameter("/team/image", "ami-oldarm64")
		parameter := nodeclass.NodeClass{Family: ec2.AL2023, AMIs: []nodeclass.Term{{SSMParameter: "/team/image"}}}
		assert.Equal(t, "ami-oldarm64", pick(images(t, f, parameter), fmt.Sprintf(plain, "arm64")))
	})
}

// Tags of images were requirements in the older version, and are not any more.
func TestImageTagsOfTheOlderVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud, f := finder(t, awstest.Config{})
		tags := map[string]string{"kind": "gpu", label.GPUManufacturer: "nvidia"}
		cloud.Put(awstest.Image{ID: "ami-tagged", Name: "tagged", Arch: "x86_64", Created: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Tags: tags})
		for version, want := range map[string]string{"karpenter.k8s.aws/v1alpha1": "", "karpenter.k8s.aws/v1": "ami-tagged"} {
			list := images(t, f, nodeclass.NodeClass{APIVersion: version, Family: ec2.AL2, AMIs: []nodeclass.Term{tag("kind", "gpu")}})
			assert.Equal(t, want, pick(list, "kubernetes.io/arch=amd64, !"+label.GPUManufacturer), version)
			assert.Equal(t, "ami-tagged", pick(list, "kubernetes.io/arch=amd64, "+label.GPUManufacturer+"=nvidia"), version)
		}
	})
}

func TestCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, f := finder(t, awstest.Config{})
		got, err := f.Cluster(t.Context(), "harbour")
		require.NoError(t, err)
		assert.Equal(t, discovery.Cluster{Name: "harbour", ARN: "arn:aws:eks:us-east-1:111122223333:cluster/harbour", Endpoint: "https://harbour.eks.example.com", CA: "Y2VydGlmaWNhdGU=", Version: "1.33", ServiceCIDR: "10.100.0.0/16"}, got)
		_, err = f.Cluster(t.Context(), "quay")
		require.ErrorIs(t, err, cloudprovider.ErrNotReady)
	})
}

func TestShifted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud, f := finder(t, awstest.Config{})
		arn := "arn:aws:eks:us-east-1:111122223333:cluster/harbour"
		got, err := f.Shifted(t.Context(), arn)
		require.NoError(t, err)
		assert.Empty(t, got, "zonal shift is not enabled")
		cloud.ShiftAway("us-east-1a", "us-east-1b")
		got, err = f.Shifted(t.Context(), arn)
		require.NoError(t, err)
		assert.Empty(t, got, "an answer holds for half a minute")
		time.Sleep(30 * time.Second)
		got, err = f.Shifted(t.Context(), arn)
		require.NoError(t, err)
		assert.Len(t, got, 2)
		_, err = f.Shifted(t.Context(), "")
		require.ErrorContains(t, err, "ARN")
	})
}

func TestCapacity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud, f := finder(t, awstest.Config{})
		cloud.Put(awstest.Reservation{ID: "cr-1", Type: "m5.large", Zone: "us-east-1a", Count: 3, Tags: map[string]string{"team": "red"}})
		cloud.Put(awstest.Reservation{ID: "cr-2", Type: "m5.xlarge", Zone: "us-east-1b", Count: 1, Block: true})
		got, err := f.Reservations(t.Context(), []nodeclass.Term{tag("team", "red"), {IDs: []string{"cr-2"}}})
		require.NoError(t, err)
		assert.Equal(t, []ec2.Reservation{
			{ID: "cr-1", InstanceType: "m5.large", Zone: "us-east-1a", Count: 3},
			{ID: "cr-2", InstanceType: "m5.xlarge", Zone: "us-east-1b", Count: 1, Block: true},
		}, got)
		got, err = f.Reservations(t.Context(), []nodeclass.Term{{MatchCriteria: "open"}})
		require.NoError(t, err)
		assert.Empty(t, got)

		cloud.Put(awstest.PlacementGroup{ID: "pg-1", Name: "racks", Strategy: "partition", Partitions: 7})
		group, err := f.PlacementGroup(t.Context(), nodeclass.PlacementGroup{Name: "racks"})
		require.NoError(t, err)
		assert.Equal(t, discovery.Placement{ID: "pg-1", Name: "racks", Strategy: "partition", Partitions: 7}, group)
		_, err = f.PlacementGroup(t.Context(), nodeclass.PlacementGroup{ID: "pg-2"})
		require.ErrorIs(t, err, cloudprovider.ErrNotReady)
	})
}

func TestAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, f := finder(t, awstest.Config{})
		subnets, err := f.Subnets(t.Context(), []nodeclass.Term{tag("cluster", "harbour")})
		require.NoError(t, err)
		a := f.Addresses()
		assert.Equal(t, "subnet-00", a.Best(subnets)["us-east-1a"].ID, "the one with the most")
		now := time.Now()
		a.Take("subnet-00", 3900, now)
		assert.Equal(t, int64(100), a.Left("subnet-00"))
		assert.Equal(t, "subnet-01", a.Best(subnets)["us-east-1a"].ID)
		a.Take("subnet-00", -3000, now)
		assert.Equal(t, "subnet-00", a.Best(subnets)["us-east-1a"].ID, "given back what was not used")
		time.Sleep(3 * time.Minute)
		assert.Equal(t, int64(4000), a.Left("subnet-00"), "by now EC2 counts it")
		a.Exhausted("subnet-00")
		assert.Equal(t, "subnet-01", a.Best(subnets)["us-east-1a"].ID)
		time.Sleep(2 * time.Minute)
		assert.Equal(t, "subnet-00", a.Best(subnets)["us-east-1a"].ID)
	})
}

func ExampleParameters() {
	for _, p := range discovery.Parameters(ec2.Windows2022, "1.33", "latest") {
		fmt.Println(p.Path, "for", p.Requirements)
	}
	// Output: /aws/service/ami-windows-latest/Windows_Server-2022-English-Core-EKS_Optimized-1.33/image_id for kubernetes.io/arch in (amd64)
}

func ExampleCache() {
	c := discovery.NewCache[string](time.Hour)
	asked := 0
	for range 3 {
		answer, err := c.Get(context.Background(), "key", func(context.Context) (string, error) { asked++; return "answer", nil })
		fmt.Println(answer, err, asked)
	}
	// Output:
	// answer <nil> 1
	// answer <nil> 1
	// answer <nil> 1
}
