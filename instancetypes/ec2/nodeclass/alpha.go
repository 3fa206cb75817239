package nodeclass

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/joinery-sdk/joinery/instancetypes/ec2"
)

// wireTemplate is the spec of an AWSNodeTemplate v1alpha1.
type wireTemplate struct {
	AMIFamily             *string           `json:"amiFamily"`
	AMISelector           map[string]string `json:"amiSelector"`
	BlockDeviceMappings   []wireDisk        `json:"blockDeviceMappings"`
	Context               *string           `json:"context"`
	DetailedMonitoring    *bool             `json:"detailedMonitoring"`
	InstanceProfile       *string           `json:"instanceProfile"`
	LaunchTemplate        *string           `json:"launchTemplate"`
	MetadataOptions       *wireMetadata     `json:"metadataOptions"`
	SecurityGroupSelector map[string]string `json:"securityGroupSelector"`
	SubnetSelector        map[string]string `json:"subnetSelector"`
	Tags                  map[string]string `json:"tags"`
	UserData              *string           `json:"userData"`
}

// wireProvider is the inline provider of a Provisioner v1alpha5.
type wireProvider struct {
	APIVersion            *string           `json:"apiVersion"`
	Kind                  *string           `json:"kind"`
	AMIFamily             *string           `json:"amiFamily"`
	BlockDeviceMappings   []wireDisk        `json:"blockDeviceMappings"`
	Context               *string           `json:"context"`
	InstanceProfile       *string           `json:"instanceProfile"`
	LaunchTemplate        *string           `json:"launchTemplate"`
	MetadataOptions       *wireMetadata     `json:"metadataOptions"`
	SecurityGroupSelector map[string]string `json:"securityGroupSelector"`
	SubnetSelector        map[string]string `json:"subnetSelector"`
	Tags                  map[string]string `json:"tags"`
}

func (w wireProvider) template() wireTemplate {
	return wireTemplate{
		AMIFamily: w.AMIFamily, BlockDeviceMappings: w.BlockDeviceMappings, Context: w.Context, InstanceProfile: w.InstanceProfile,
		LaunchTemplate: w.LaunchTemplate, MetadataOptions: w.MetadataOptions, SecurityGroupSelector: w.SecurityGroupSelector, SubnetSelector: w.SubnetSelector, Tags: w.Tags,
	}
}

func (r *report) template(raw json.RawMessage) NodeClass {
	var w wireTemplate
	r.strict("spec", raw, &w)
	return r.aws("spec", w)
}

func (r *report) aws(path string, w wireTemplate) NodeClass {
	c := NodeClass{
		Family: ec2.AL2, InstanceProfile: value(w.InstanceProfile), LaunchTemplate: value(w.LaunchTemplate), UserData: value(w.UserData),
		Context: value(w.Context), Tags: w.Tags, DetailedMonitoring: value(w.DetailedMonitoring),
	}
	if w.AMIFamily != nil {
		c.Family = ec2.Family(*w.AMIFamily)
		r.oneOf(path+".amiFamily", *w.AMIFamily, string(ec2.AL2), string(ec2.Bottlerocket), string(ec2.Custom), string(ec2.Ubuntu),
			string(ec2.Windows2019), string(ec2.Windows2022))
	}
	c.AMIs = r.selector(path+".amiSelector", w.AMISelector, ami())
	c.Subnets = r.selector(path+".subnetSelector", w.SubnetSelector, subnet())
	c.SecurityGroups = r.selector(path+".securityGroupSelector", w.SecurityGroupSelector, group())
	c.BlockDevices = r.disks(path+".blockDeviceMappings", w.BlockDeviceMappings, false)
	c.Metadata = r.metadata(path+".metadataOptions", w.MetadataOptions, 2)
	r.tags(path+".tags", w.Tags)
	if len(w.SubnetSelector) == 0 {
		r.bad(path+".subnetSelector", "missing: want tags or aws-ids of subnets")
	}
	if w.LaunchTemplate == nil {
		if len(w.SecurityGroupSelector) == 0 {
			r.bad(path+".securityGroupSelector", "missing: want tags or aws-ids of security groups")
		}
		if c.Family == ec2.Custom && len(w.AMISelector) == 0 {
			r.bad(path+".amiSelector", "missing: amiFamily Custom has no image of its own")
		}
		return c
	}
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"amiFamily", w.AMIFamily != nil},
		{"amiSelector", w.AMISelector != nil},
		{"blockDeviceMappings", len(w.BlockDeviceMappings) > 0},
		{"instanceProfile", w.InstanceProfile != nil},
		{"metadataOptions", w.MetadataOptions != nil},
		{"securityGroupSelector", w.SecurityGroupSelector != nil},
		{"userData", w.UserData != nil},
	} {
		if f.set {
			r.bad(path+"."+f.name, "cannot be set beside launchTemplate, which decides it")
		}
	}
	return c
}

// idKind describes the ids of a kind of resource.
type idKind struct{ prefix, what string }

func ami() idKind    { return idKind{"ami-", "image"} }
func subnet() idKind { return idKind{"subnet-", "subnet"} }
func group() idKind  { return idKind{"sg-", "security group"} }

var idTail = regexp.MustCompile(`^[0-9a-z]+$`)

func (k idKind) matches(id string) bool {
	tail, ok := strings.CutPrefix(id, k.prefix)
	return ok && idTail.MatchString(tail)
}

// selector turns a selector of v1alpha1 into terms. All its keys must match. A value may list
// several values; one of them must match.
func (r *report) selector(path string, by map[string]string, kind idKind) []Term {
	if len(by) == 0 {
		return nil
	}
	var t Term
	for _, key := range slices.Sorted(maps.Keys(by)) {
		var values []string
		for v := range strings.SplitSeq(by[key], ",") {
			if v = strings.TrimSpace(v); v != "" {
				values = append(values, v)
			}
		}
		if key == "" || by[key] == "" && kind != ami() {
			r.bad(path, "%q: %q: want no empty key or value; \"*\" means any", key, by[key])
		}
		switch {
		case key == "aws-ids" || key == "aws::ids":
			for _, id := range values {
				if !kind.matches(id) {
					r.bad(path, "%q: want an id of a %s, %s...", id, kind.what, kind.prefix)
				}
			}
			t.IDs = values
		case key == "aws::owners" && kind == ami():
			t.Owners = values
		case key == "aws::name" && kind == ami():
			t.Names = values
		default:
			t.Tags = append(t.Tags, Tag{Key: key, Values: values})
		}
	}
	return []Term{t}
}
