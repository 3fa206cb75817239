package discovery

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
)

// Template is a launch template made by others.
type Template struct {
	Name string
	// Version is the number of its latest version, which has Image and Groups.
	Version string
	Image   string   // an image's id
	Groups  []string // ids of security groups, in ascending order; none means the network's default
}

// Template reads the latest version of a launch template. The error says that there is none, or
// that it names no image.
func (f *Finder) Template(ctx context.Context, name string) (Template, error) {
	found, err := remembered(ctx, f, imageTTL, key("template", name), func(ctx context.Context) (Template, error) {
		out, err := f.clients.EC2.DescribeLaunchTemplateVersions(ctx, &ec2.DescribeLaunchTemplateVersionsInput{
			LaunchTemplateName: aws.String(name), Versions: []string{"$Latest"},
			ResolveAlias: aws.Bool(true), // templates may name a parameter instead of an image
		})
		if err != nil {
			return Template{}, err
		}
		if len(out.LaunchTemplateVersions) == 0 {
			return Template{}, notFound("launch template", name, errors.New("there is none"))
		}
		v := out.LaunchTemplateVersions[0]
		t := Template{Name: name, Version: strconv.FormatInt(aws.ToInt64(v.VersionNumber), 10)}
		if d := v.LaunchTemplateData; d != nil {
			t.Image = aws.ToString(d.ImageId)
			t.Groups = append(t.Groups, d.SecurityGroupIds...)
			for _, n := range d.NetworkInterfaces {
				t.Groups = append(t.Groups, n.Groups...)
			}
		}
		if t.Image == "" {
			return Template{}, notFound("launch template", name, errors.New("its latest version names no image, which decides the machines: name one"))
		}
		slices.Sort(t.Groups)
		t.Groups = slices.Compact(t.Groups)
		return t, nil
	})
	found.Groups = slices.Clone(found.Groups)
	return found, err
}
