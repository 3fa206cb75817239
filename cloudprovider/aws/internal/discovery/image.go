package discovery

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	instances "github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
	"github.com/joinery-sdk/joinery/requirements"
)

// Image is a machine image and the instance types that it is for.
type Image struct {
	ID, Name string
	// Created is zero for images that a parameter named: those are always the newest.
	Created    time.Time
	Deprecated bool
	// Requirements are what an instance type must satisfy to boot from it.
	Requirements requirements.Set
}

// Images returns the images that a node class selects, for a Kubernetes version such as "1.33",
// with the best one for each requirement set. The best one is one that is not deprecated, then the
// newest, then the one with the greatest name and id. The images are in order of preference:
// narrower requirements first, then by id.
func (f *Finder) Images(ctx context.Context, class nodeclass.NodeClass, version string) ([]Image, error) {
	found, err := remembered(ctx, f, imageTTL, key("images", class.Family, class.AMIs, class.APIVersion, version), func(ctx context.Context) ([]Image, error) {
		list, err := f.readImages(ctx, class, version)
		if err != nil {
			return nil, err
		}
		return best(list), nil
	})
	return slices.Clone(found), err
}

func (f *Finder) readImages(ctx context.Context, class nodeclass.NodeClass, version string) ([]Image, error) {
	if alias := Version(class); alias != "" {
		return f.fromParameters(ctx, class.Family, alias, version)
	}
	var list []Image
	for _, t := range class.AMIs {
		if t.SSMParameter != "" {
			ids, err := f.parameters(ctx, []string{t.SSMParameter})
			if err != nil {
				return nil, err
			}
			id, ok := ids[t.SSMParameter]
			if !ok {
				continue
			}
			t = nodeclass.Term{IDs: []string{id}}
		}
		for _, filters := range Filters([]nodeclass.Term{t}, "image-id", "name") {
			read, err := f.describeImages(ctx, filters, owners(class, t), strings.HasSuffix(class.APIVersion, "v1alpha1"))
			if err != nil {
				return nil, err
			}
			list = append(list, read...)
		}
	}
	return list, nil
}

// Version returns the version of the family's images that a node class names by an alias: latest,
// or as AWS writes it. It is empty if the class selects images in another way.
func Version(class nodeclass.NodeClass) string {
	for _, t := range class.AMIs {
		if t.Alias != "" {
			_, version, _ := strings.Cut(t.Alias, "@")
			return cmp.Or(version, "latest")
		}
	}
	if len(class.AMIs) == 0 {
		return "latest"
	}
	return ""
}

// owners returns the owners of images that a term may select. Any account can use any name. So
// without an owner only the account's own images and Amazon's count; tags are visible only on the
// account's own images. The older version used both defaults for anything except ids.
func owners(class nodeclass.NodeClass, t nodeclass.Term) []string {
	switch {
	case len(t.Owners) > 0:
		return t.Owners
	case len(t.IDs) > 0:
		return nil
	case len(t.Names) > 0 || strings.HasSuffix(class.APIVersion, "v1alpha1"):
		return []string{"self", "amazon"}
	default:
		return nil
	}
}

func (f *Finder) describeImages(ctx context.Context, filters []types.Filter, owners []string, tagged bool) ([]Image, error) {
	var list []Image
	found, err := api.All(ctx, ec2.NewDescribeImagesPaginator(f.clients.EC2, &ec2.DescribeImagesInput{
		Filters: append(slices.Clone(filters), filter("state", "available")), Owners: owners, IncludeDeprecated: aws.Bool(true), MaxResults: aws.Int32(1000),
	}), func(o *ec2.DescribeImagesOutput) []types.Image { return o.Images })
	if err != nil {
		return nil, err
	}
	now := time.Now()
	for _, i := range found {
		arch, ok := map[types.ArchitectureValues]string{types.ArchitectureValuesX8664: "amd64", types.ArchitectureValuesArm64: "arm64"}[i.Architecture]
		if !ok {
			continue
		}
		image := Image{ID: aws.ToString(i.ImageId), Name: aws.ToString(i.Name)}
		// An image without a readable date counts as the oldest.
		image.Created, _ = time.Parse(time.RFC3339, aws.ToString(i.CreationDate))
		if end, err := time.Parse(time.RFC3339, aws.ToString(i.DeprecationTime)); err == nil {
			image.Deprecated = !now.Before(end)
		}
		var b requirements.Builder
		b.Add(requirements.In(corev1.LabelArchStable, arch))
		if tagged {
			for _, t := range i.Tags {
				if k := aws.ToString(t.Key); instances.WellKnown().Contains(k) {
					b.Add(requirements.In(k, aws.ToString(t.Value)))
				}
			}
		}
		if image.Requirements, err = b.Set(); err != nil {
			continue // tags that contradict the image: it boots nowhere
		}
		list = append(list, image)
	}
	return list, nil
}

// best keeps one image for each requirement set.
func best(list []Image) []Image {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b Image) int {
		if a.Deprecated != b.Deprecated {
			if a.Deprecated {
				return 1
			}
			return -1
		}
		return cmp.Or(b.Created.Compare(a.Created), strings.Compare(b.Name, a.Name), strings.Compare(b.ID, a.ID))
	})
	seen := map[string]bool{}
	list = slices.DeleteFunc(list, func(i Image) bool {
		set := i.Requirements.String()
		again := seen[set]
		seen[set] = true
		return again
	})
	slices.SortStableFunc(list, func(a, b Image) int {
		return cmp.Or(cmp.Compare(b.Requirements.Len(), a.Requirements.Len()), strings.Compare(a.Requirements.String(), b.Requirements.String()))
	})
	return list
}

// ImageFor returns the first image that a type can boot from, or false if there is none.
func ImageFor(images []Image, t requirements.Set) (Image, bool) {
	for _, i := range images {
		if i.Requirements.Overlaps(t) {
			return i, true
		}
	}
	return Image{}, false
}

// notFound says that something named by a node class does not exist.
func notFound(what, name string, err error) error {
	return &cloudprovider.Error{Code: cloudprovider.ErrNotReady, Err: fmt.Errorf("%s %q: %w", what, name, err)}
}
