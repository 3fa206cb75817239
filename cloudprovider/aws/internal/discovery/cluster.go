package discovery

import (
	"cmp"
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
)

// Cluster is EKS's description of a cluster.
type Cluster struct {
	Name, Endpoint string
	// ARN is needed only for zonal shifts.
	ARN string
	// CA is the certificate authority in base64. Version is the minor version, such as "1.33".
	CA, Version string
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
