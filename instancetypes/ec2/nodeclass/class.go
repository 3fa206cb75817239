package nodeclass

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joinery-sdk/joinery/instancetypes/ec2"
)

// wireBeta is the spec of an EC2NodeClass v1beta1.
type wireBeta struct {
	AMIFamily                  *string           `json:"amiFamily"`
	AMISelectorTerms           []wireTerm        `json:"amiSelectorTerms"`
	AssociatePublicIPAddress   *bool             `json:"associatePublicIPAddress"`
	BlockDeviceMappings        []wireDisk        `json:"blockDeviceMappings"`
	Context                    *string           `json:"context"`
	DetailedMonitoring         *bool             `json:"detailedMonitoring"`
	InstanceProfile            *string           `json:"instanceProfile"`
	InstanceStorePolicy        *string           `json:"instanceStorePolicy"`
	MetadataOptions            *wireMetadata     `json:"metadataOptions"`
	Role                       *string           `json:"role"`
	SecurityGroupSelectorTerms []wireTerm        `json:"securityGroupSelectorTerms"`
	SubnetSelectorTerms        []wireTerm        `json:"subnetSelectorTerms"`
	Tags                       map[string]string `json:"tags"`
	UserData                   *string           `json:"userData"`
}

// wireV1 is the spec of an EC2NodeClass v1.
type wireV1 struct {
	AMIFamily                        *string           `json:"amiFamily"`
	AMISelectorTerms                 []wireTerm        `json:"amiSelectorTerms"`
	AssociatePublicIPAddress         *bool             `json:"associatePublicIPAddress"`
	BlockDeviceMappings              []wireDisk        `json:"blockDeviceMappings"`
	CapacityReservationSelectorTerms []wireTerm        `json:"capacityReservationSelectorTerms"`
	ConnectionTracking               *wireTracking     `json:"connectionTracking"`
	Context                          *string           `json:"context"`
	CPUOptions                       *wireCPU          `json:"cpuOptions"`
	DetailedMonitoring               *bool             `json:"detailedMonitoring"`
	InstanceProfile                  *string           `json:"instanceProfile"`
	InstanceStorePolicy              *string           `json:"instanceStorePolicy"`
	IPPrefixCount                    *int32            `json:"ipPrefixCount"`
	Kubelet                          *wireKubelet      `json:"kubelet"`
	MetadataOptions                  *wireMetadata     `json:"metadataOptions"`
	NetworkInterfaces                []wireInterface   `json:"networkInterfaces"`
	PlacementGroupSelector           *wireGroup        `json:"placementGroupSelector"`
	Role                             *string           `json:"role"`
	SecurityGroupSelectorTerms       []wireTerm        `json:"securityGroupSelectorTerms"`
	SubnetSelectorTerms              []wireTerm        `json:"subnetSelectorTerms"`
	Tags                             map[string]string `json:"tags"`
	UserData                         *string           `json:"userData"`
}

type wireTracking struct {
	TCPEstablishedTimeout *int64 `json:"tcpEstablishedTimeout"`
	UDPStreamTimeout      *int64 `json:"udpStreamTimeout"`
	UDPTimeout            *int64 `json:"udpTimeout"`
}

type wireCPU struct {
	NestedVirtualization *string `json:"nestedVirtualization"`
}

type wireInterface struct {
	DeviceIndex      *int64  `json:"deviceIndex"`
	InterfaceType    *string `json:"interfaceType"`
	NetworkCardIndex *int64  `json:"networkCardIndex"`
}

type wireGroup struct {
	ID   *string `json:"id"`
	Name *string `json:"name"`
}

func (r *report) beta(raw json.RawMessage) NodeClass {
	var w wireBeta
	r.strict("spec", raw, &w)
	c := r.common(wireV1{
		AMIFamily: w.AMIFamily, AMISelectorTerms: w.AMISelectorTerms, AssociatePublicIPAddress: w.AssociatePublicIPAddress,
		BlockDeviceMappings: w.BlockDeviceMappings, Context: w.Context, DetailedMonitoring: w.DetailedMonitoring, InstanceProfile: w.InstanceProfile,
		InstanceStorePolicy: w.InstanceStorePolicy, MetadataOptions: w.MetadataOptions, Role: w.Role, SecurityGroupSelectorTerms: w.SecurityGroupSelectorTerms,
		SubnetSelectorTerms: w.SubnetSelectorTerms, Tags: w.Tags, UserData: w.UserData,
	}, 2)
	c.AMIs = r.terms("spec.amiSelectorTerms", w.AMISelectorTerms, ami(), "id", "name", "owner", "tags")
	const path = "spec.amiFamily"
	if w.AMIFamily == nil {
		r.bad(path, "missing: want one of AL2, AL2023, Bottlerocket, Custom, Ubuntu, Windows2019, Windows2022")
		return c
	}
	c.Family = ec2.Family(*w.AMIFamily)
	r.oneOf(path, *w.AMIFamily, "AL2", "AL2023", "Bottlerocket", "Custom", "Ubuntu", "Windows2019", "Windows2022")
	if c.Family == ec2.Custom && len(c.AMIs) == 0 {
		r.bad("spec.amiSelectorTerms", "missing: amiFamily Custom has no image of its own")
	}
	return c
}

func (r *report) v1(raw json.RawMessage) NodeClass {
	var w wireV1
	r.strict("spec", raw, &w)
	c := r.common(w, 1)
	c.AMIs = r.terms("spec.amiSelectorTerms", w.AMISelectorTerms, ami(), "alias", "id", "name", "owner", "ssmParameter", "tags")
	if len(c.AMIs) == 0 {
		r.bad("spec.amiSelectorTerms", "missing: want an alias such as al2023@latest, or terms")
	}
	c.Family = r.family(w.AMIFamily, c.AMIs)
	c.CapacityReservations = r.terms("spec.capacityReservationSelectorTerms", w.CapacityReservationSelectorTerms, idKind{"cr-", "capacity reservation"}, "id", "instanceMatchCriteria", "ownerID", "tags")
	c.Kubelet = w.Kubelet.kubelet(r)
	c.IPPrefixCount = w.IPPrefixCount
	r.least("spec.ipPrefixCount", w.IPPrefixCount, 0)
	if w.CPUOptions != nil && w.CPUOptions.NestedVirtualization != nil {
		c.NestedVirtualization = *w.CPUOptions.NestedVirtualization
		r.oneOf("spec.cpuOptions.nestedVirtualization", c.NestedVirtualization, "enabled", "disabled")
	}
	c.NetworkInterfaces = r.interfaces(w.NetworkInterfaces)
	if t := w.ConnectionTracking; t != nil {
		c.ConnectionTracking = &ConnectionTracking{TCPEstablished: value(t.TCPEstablishedTimeout), UDPStream: value(t.UDPStreamTimeout), UDP: value(t.UDPTimeout)}
		const path = "spec.connectionTracking"
		if t.TCPEstablishedTimeout == nil && t.UDPStreamTimeout == nil && t.UDPTimeout == nil {
			r.bad(path, "want tcpEstablishedTimeout, udpStreamTimeout or udpTimeout")
		}
		r.within(path+".tcpEstablishedTimeout", t.TCPEstablishedTimeout, 60, 432000)
		r.within(path+".udpStreamTimeout", t.UDPStreamTimeout, 60, 180)
		r.within(path+".udpTimeout", t.UDPTimeout, 30, 60)
	}
	if g := w.PlacementGroupSelector; g != nil {
		c.PlacementGroup = &PlacementGroup{Name: value(g.Name), ID: value(g.ID)}
		const path = "spec.placementGroupSelector"
		if (c.PlacementGroup.Name == "") == (c.PlacementGroup.ID == "") {
			r.bad(path, "want either name or id")
		}
		if kind := (idKind{"pg-", "placement group"}); g.ID != nil && !kind.matches(*g.ID) {
			r.bad(path+".id", "%q: want an id of a placement group, pg-...", *g.ID)
		}
	}
	return c
}

// common reads what both versions have in common. hops is the default that differs.
func (r *report) common(w wireV1, hops int64) NodeClass {
	c := NodeClass{
		Role: value(w.Role), InstanceProfile: value(w.InstanceProfile), UserData: value(w.UserData), Context: value(w.Context), Tags: w.Tags,
		DetailedMonitoring: value(w.DetailedMonitoring), AssociatePublicIP: w.AssociatePublicIPAddress,
	}
	c.Subnets = r.terms("spec.subnetSelectorTerms", w.SubnetSelectorTerms, subnet(), "id", "tags")
	c.SecurityGroups = r.terms("spec.securityGroupSelectorTerms", w.SecurityGroupSelectorTerms, group(), "id", "name", "tags")
	if len(c.Subnets) == 0 {
		r.bad("spec.subnetSelectorTerms", "missing: want at least one term")
	}
	if len(c.SecurityGroups) == 0 {
		r.bad("spec.securityGroupSelectorTerms", "missing: want at least one term")
	}
	if (c.Role == "") == (c.InstanceProfile == "") {
		r.bad("spec", "want either role or instanceProfile")
	}
	c.BlockDevices = r.disks("spec.blockDeviceMappings", w.BlockDeviceMappings, true)
	c.Metadata = r.metadata("spec.metadataOptions", w.MetadataOptions, hops)
	if w.InstanceStorePolicy != nil {
		r.oneOf("spec.instanceStorePolicy", *w.InstanceStorePolicy, "RAID0")
		c.RAID0 = *w.InstanceStorePolicy == "RAID0"
	}
	r.tags("spec.tags", w.Tags, "eks:eks-cluster-name", "karpenter.sh/nodepool", "karpenter.sh/nodeclaim", "karpenter.k8s.aws/ec2nodeclass")
	return c
}

// aliases maps the family in an alias to the image family.
func aliases() map[string]ec2.Family {
	return map[string]ec2.Family{
		"al2": ec2.AL2, "al2023": ec2.AL2023, "bottlerocket": ec2.Bottlerocket,
		"windows2019": ec2.Windows2019, "windows2022": ec2.Windows2022, "windows2025": ec2.Windows2025,
	}
}

// family returns the named family, or the one of the alias. Naming a family other than the alias's
// is a fault, except for Custom.
func (r *report) family(named *string, terms []Term) ec2.Family {
	var ofAlias ec2.Family
	const path = "spec.amiSelectorTerms[%d].alias"
	for i, t := range terms {
		if t.Alias == "" {
			continue
		}
		at := fmt.Sprintf(path, i)
		name, version, ok := strings.Cut(t.Alias, "@")
		if !ok || version == "" || len(t.Alias) > 30 {
			r.bad(at, "%q: want family@version, such as al2023@latest", t.Alias)
			continue
		}
		if ofAlias, ok = aliases()[name]; !ok {
			r.oneOf(at, name, slices.Sorted(maps.Keys(aliases()))...)
		}
		if ofAlias.IsWindows() && version != "latest" {
			r.bad(at, "%q: Windows has no versions: want %s@latest", t.Alias, name)
		}
		if len(terms) > 1 {
			r.bad(at, "an alias must be the only term")
		}
	}
	if named == nil {
		if ofAlias == "" && !slices.ContainsFunc(terms, func(t Term) bool { return t.Alias != "" }) {
			r.bad("spec.amiFamily", "missing: want a family, or an alias as the only image term")
		}
		return ofAlias
	}
	r.oneOf("spec.amiFamily", *named, "AL2", "AL2023", "Bottlerocket", "Custom", "Windows2019", "Windows2022", "Windows2025")
	if f := ec2.Family(*named); ofAlias != "" && f != ofAlias && f != ec2.Custom {
		r.bad("spec.amiFamily", "%q: the alias is of %s: want that or Custom", *named, ofAlias)
	}
	return ec2.Family(*named)
}

func (r *report) interfaces(wire []wireInterface) []NetworkInterface {
	const path = "spec.networkInterfaces"
	if len(wire) > 150 {
		r.bad(path, "%d interfaces: want at most 150", len(wire))
	}
	var out []NetworkInterface
	seen, efa, primary := map[[2]int64]bool{}, map[int64]bool{}, len(wire) == 0
	for i, w := range wire {
		at := fmt.Sprintf("%s[%d]", path, i)
		n := NetworkInterface{Card: value(w.NetworkCardIndex), Device: value(w.DeviceIndex), Type: value(w.InterfaceType)}
		if w.NetworkCardIndex == nil || w.DeviceIndex == nil || w.InterfaceType == nil {
			r.bad(at, "want networkCardIndex, deviceIndex and interfaceType")
		} else {
			r.oneOf(at+".interfaceType", n.Type, "interface", "efa-only")
		}
		if n.Card < 0 || n.Device < 0 {
			r.bad(at, "want no negative index")
		}
		if key := [2]int64{n.Card, n.Device}; seen[key] {
			r.bad(at, "card %d has device %d twice", n.Card, n.Device)
		} else {
			seen[key] = true
		}
		if n.Type == "efa-only" {
			if efa[n.Card] {
				r.bad(at, "card %d has more than one efa-only interface", n.Card)
			}
			efa[n.Card] = true
		}
		primary = primary || n == NetworkInterface{Type: "interface"}
		out = append(out, n)
	}
	if !primary {
		r.bad(path, "want a primary interface: card 0, device 0, interfaceType interface")
	}
	return out
}

func (r *report) within(path string, p *int64, low, high int64) {
	if p != nil && (*p < low || *p > high) {
		r.bad(path, "%d: want %d to %d", *p, low, high)
	}
}
