package discovery

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	instances "github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/label"
	"github.com/joinery-sdk/joinery/requirements"
)

// Parameter is a public parameter of AWS with the id of an image, and what the image is for.
type Parameter struct {
	Path         string
	Requirements requirements.Set
}

// Parameters returns the parameters with the images of a family, for a Kubernetes version such as
// "1.33" and a version of the image, "latest" or as AWS writes it. A family without images of its
// own has none.
func Parameters(family instances.Family, kubernetes, version string) []Parameter {
	var out []Parameter
	add := func(path, arch string, more ...requirements.Requirement) {
		set, err := requirements.Of(append([]requirements.Requirement{requirements.In(corev1.LabelArchStable, arch)}, more...)...)
		if err == nil {
			out = append(out, Parameter{path, set})
		}
	}
	noGPU, noChip := requirements.DoesNotExist(label.GPUCount), requirements.DoesNotExist(label.AcceleratorCount)
	gpu, chip := requirements.Exists(label.GPUCount), requirements.Exists(label.AcceleratorCount)
	latest := version == "" || version == "latest"
	// eks is the path of an image of EKS's own. name is the image's, without its versions.
	eks := func(folder, name string) string {
		name += "-" + kubernetes + "-" + version
		if latest {
			name = "recommended"
		}
		return fmt.Sprintf("/aws/service/eks/optimized-ami/%s/%s/%s/image_id", kubernetes, folder, name)
	}
	switch family {
	case instances.AL2023, "":
		path := func(arch, variant string) string {
			return eks("amazon-linux-2023/"+arch+"/"+variant, "amazon-eks-node-al2023-"+arch+"-"+variant)
		}
		add(path("x86_64", "standard"), "amd64", noGPU, noChip)
		add(path("arm64", "standard"), "arm64", noGPU, noChip)
		add(path("x86_64", "nvidia"), "amd64", gpu)
		add(path("arm64", "nvidia"), "arm64", gpu)
		add(path("x86_64", "neuron"), "amd64", chip)
	case instances.AL2:
		path := func(suffix string) string { return eks("amazon-linux-2"+suffix, "amazon-eks"+suffix+"-node") }
		add(path(""), "amd64", noGPU, noChip)
		add(path("-arm64"), "arm64", noGPU, noChip)
		add(path("-gpu"), "amd64", gpu) // one image for both kinds of device
		add(path("-gpu"), "amd64", chip)
	case instances.Bottlerocket:
		if latest {
			version = "latest"
		}
		path := func(variant, arch string) string {
			return fmt.Sprintf("/aws/service/bottlerocket/aws-k8s-%s%s/%s/%s/image_id", kubernetes, variant, arch, strings.TrimPrefix(version, "v"))
		}
		add(path("", "x86_64"), "amd64", noGPU) // serves Neuron as well
		add(path("", "arm64"), "arm64", noGPU)
		add(path("-nvidia", "x86_64"), "amd64", gpu)
		add(path("-nvidia", "arm64"), "arm64", gpu)
	case instances.Windows2019, instances.Windows2022, instances.Windows2025:
		year := strings.TrimPrefix(string(family), "Windows")
		add(fmt.Sprintf("/aws/service/ami-windows-latest/Windows_Server-%s-English-Core-EKS_Optimized-%s/image_id", year, kubernetes), "amd64")
	case instances.Ubuntu:
		// The newest release that Canonical publishes for the Kubernetes version counts. The
		// available releases change.
		for _, release := range []string{"24.04 gp3", "22.04 gp2", "20.04 gp2"} {
			year, disk, _ := strings.Cut(release, " ")
			for _, arch := range []string{"amd64", "arm64"} {
				add(fmt.Sprintf("/aws/service/canonical/ubuntu/eks/%s/%s/stable/current/%s/hvm/ebs-%s/ami-id", year, kubernetes, arch, disk), arch)
			}
		}
	case instances.Custom:
	}
	return out
}

// lastAL2 is the last minor version of Kubernetes with images of AL2, see "Release notes for
// Kubernetes versions" in the Amazon EKS User Guide.
const lastAL2 = 32

// fromParameters returns the images of a family by AWS's parameters. Variants that AWS does not
// publish are left out.
func (f *Finder) fromParameters(ctx context.Context, family instances.Family, alias, version string) ([]Image, error) {
	if minor, err := strconv.Atoi(strings.TrimPrefix(version, "1.")); family == instances.AL2 && err == nil && minor > lastAL2 {
		return nil, &cloudprovider.Error{Code: cloudprovider.ErrInvalidSpec, Err: fmt.Errorf("AWS publishes images of AL2 up to Kubernetes 1.%d, and the cluster has %s: use AL2023, or select images of your own by amiSelectorTerms", lastAL2, version)}
	}
	wanted := Parameters(family, version, alias)
	if len(wanted) == 0 {
		return nil, &cloudprovider.Error{Code: cloudprovider.ErrInvalidSpec, Err: fmt.Errorf("family %q has no images of its own: the node class must select one", family)}
	}
	var paths []string
	for _, p := range wanted {
		paths = append(paths, p.Path)
	}
	ids, err := f.parameters(ctx, paths)
	if err != nil {
		return nil, err
	}
	var list []Image
	for _, p := range wanted {
		same := func(i Image) bool { return i.Requirements.Equal(p.Requirements) } // an earlier one is preferred
		if id, ok := ids[p.Path]; ok && !slices.ContainsFunc(list, same) {
			list = append(list, Image{ID: id, Name: p.Path, Requirements: p.Requirements})
		}
	}
	if len(list) == 0 {
		return nil, notFound("image", fmt.Sprintf("%s@%s", strings.ToLower(string(family)), alias), fmt.Errorf("AWS publishes none for Kubernetes %s (looked for %s and %d more): select images by amiSelectorTerms, which may name a parameter", version, paths[0], len(paths)-1))
	}
	return list, nil
}

// parameters reads parameters, ten per call. Parameters that do not exist are missing from the
// result.
func (f *Finder) parameters(ctx context.Context, names []string) (map[string]string, error) {
	unique := map[string]bool{}
	for _, n := range names {
		unique[n] = true
	}
	out := map[string]string{}
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(unique)), 10) {
		answer, err := f.clients.SSM.GetParameters(ctx, &ssm.GetParametersInput{Names: chunk})
		if err != nil {
			return nil, err
		}
		for _, p := range answer.Parameters {
			out[aws.ToString(p.Name)] = aws.ToString(p.Value)
		}
	}
	return out, nil
}
