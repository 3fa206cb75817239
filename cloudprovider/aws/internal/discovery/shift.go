package discovery

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
)

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
