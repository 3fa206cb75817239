package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
)

// Cluster is what a node needs to join a cluster, and what determines its image.
type Cluster struct {
	// Endpoint is the address of the API server, with https://.
	Name, Endpoint string
	// ARN is needed only for zonal shifts.
	ARN string
	// CA is the certificate authority as EKS returns it: PEM in base64. Version is the minor
	// version, such as "1.33".
	CA, Version string
	// ServiceCIDR is the network of services. AL2023 requires it, and all families derive the
	// cluster's DNS from it. IPv6 says that pods get IPv6 addresses.
	ServiceCIDR string
	IPv6        bool
}

// Cluster asks EKS for the cluster.
func (f *Finder) Cluster(ctx context.Context, name string) (Cluster, error) {
	return remembered(ctx, f, clusterTTL, key("cluster", name), func(ctx context.Context) (Cluster, error) {
		out, err := f.clients.EKS.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String(name)})
		if err != nil {
			return Cluster{}, err
		}
		if out.Cluster == nil {
			return Cluster{}, fmt.Errorf("aws: eks:DescribeCluster said nothing about %q", name)
		}
		c := Cluster{Name: name, ARN: aws.ToString(out.Cluster.Arn), Endpoint: aws.ToString(out.Cluster.Endpoint), Version: aws.ToString(out.Cluster.Version)}
		if out.Cluster.CertificateAuthority != nil {
			c.CA = aws.ToString(out.Cluster.CertificateAuthority.Data)
		}
		if n := out.Cluster.KubernetesNetworkConfig; n != nil {
			c.IPv6 = n.IpFamily == types.IpFamilyIpv6
			c.ServiceCIDR = aws.ToString(n.ServiceIpv4Cidr)
			if c.IPv6 {
				c.ServiceCIDR = cmp.Or(aws.ToString(n.ServiceIpv6Cidr), c.ServiceCIDR)
			}
		}
		return c, nil
	})
}

// Shifted returns the zones that a cluster's traffic has been shifted away from, by a person or by
// AWS itself, as names or ids in ascending order. cluster is an ARN. A cluster without zonal shift
// has none.
func (f *Finder) Shifted(ctx context.Context, cluster string) ([]string, error) {
	found, err := remembered(ctx, f, shiftTTL, key("shifts", cluster), func(ctx context.Context) ([]string, error) {
		if cluster == "" {
			return nil, errors.New("aws: the cluster's ARN is not known: want discovery.Cluster.ARN")
		}
		out, err := f.clients.ARC.GetManagedResource(ctx, &arczonalshift.GetManagedResourceInput{ResourceIdentifier: aws.String(cluster)})
		if api.Reason(err) == "ResourceNotFoundException" {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		var zones []string
		for zone, weight := range out.AppliedWeights {
			if weight == 0 {
				zones = append(zones, zone)
			}
		}
		slices.Sort(zones)
		return zones, nil
	})
	return slices.Clone(found), err
}
