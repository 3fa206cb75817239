package awstest

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

type subnet struct {
	id, zone, zoneID, vpc string
	free                  int
	tags                  map[string]string
}

type group struct {
	id, name string
	tags     map[string]string
}

type image struct {
	id, name, arch, owner string
	created, deprecated   time.Time
	tags                  map[string]string
}

type reservation struct {
	id, typ, zone, owner, criteria string
	free, total                    int
	block, interruptible           bool
	end                            time.Time
	tags                           map[string]string
}

type placement struct {
	id, name, strategy string
	partitions         int
}

// account is the one that owns everything here.
const account = "111122223333"

// furnish makes a network, images and parameters for the cluster: two subnets in each of three zones, two security groups, images of
// every kind, a role and a queue.
func (c *Cloud) furnish() {
	cluster := map[string]string{"cluster": c.config.Cluster}
	for i, z := range c.region.Zones[:min(3, len(c.region.Zones))] {
		for j, free := range []int{4000, 250} {
			c.subnets = append(c.subnets, &subnet{
				id: fmt.Sprintf("subnet-%d%d", i, j), zone: z.Name, zoneID: z.ID, vpc: "vpc-1", free: free,
				tags: map[string]string{"cluster": c.config.Cluster, "Name": fmt.Sprintf("private-%d-%d", i, j)},
			})
		}
	}
	c.groups = []group{{"sg-1", "nodes", cluster}, {"sg-2", "shared", map[string]string{"team": "base"}}}
	for _, arch := range []string{"x86_64", "arm64"} {
		for i, name := range []string{"old", "new"} {
			c.images = append(c.images, image{
				id: "ami-" + name + strings.ReplaceAll(arch, "_", ""), name: "own-" + name + "-" + arch, arch: arch, owner: account,
				created: time.Date(2026, time.Month(1+i), 1, 0, 0, 0, 0, time.UTC), tags: cluster,
			})
		}
	}
	put := func(id, arch string, paths ...string) {
		c.images = append(c.images, image{id: id, name: id, arch: arch, owner: "602401143452", created: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)})
		for _, p := range paths {
			c.parameters[p] = id
		}
	}
	v := c.config.Version
	al2023 := "/aws/service/eks/optimized-ami/" + v + "/amazon-linux-2023/"
	put("ami-al2023x86", "x86_64", al2023+"x86_64/standard/recommended/image_id", al2023+"x86_64/standard/amazon-eks-node-al2023-x86_64-standard-"+v+"-v20260301/image_id")
	put("ami-al2023arm", "arm64", al2023+"arm64/standard/recommended/image_id")
	put("ami-al2023gpu", "x86_64", al2023+"x86_64/nvidia/recommended/image_id")
	put("ami-al2023neuron", "x86_64", al2023+"x86_64/neuron/recommended/image_id")
	al2 := "/aws/service/eks/optimized-ami/" + v + "/amazon-linux-2"
	put("ami-al2x86", "x86_64", al2+"/recommended/image_id")
	put("ami-al2arm", "arm64", al2+"-arm64/recommended/image_id")
	put("ami-al2gpu", "x86_64", al2+"-gpu/recommended/image_id")
	rocket := "/aws/service/bottlerocket/aws-k8s-" + v
	put("ami-rocketx86", "x86_64", rocket+"/x86_64/latest/image_id")
	put("ami-rocketarm", "arm64", rocket+"/arm64/latest/image_id")
	put("ami-rocketgpu", "x86_64", rocket+"-nvidia/x86_64/latest/image_id")
	for _, year := range []string{"2019", "2022", "2025"} {
		put("ami-windows"+year, "x86_64", "/aws/service/ami-windows-latest/Windows_Server-"+year+"-English-Core-EKS_Optimized-"+v+"/image_id")
	}
	ubuntu := "/aws/service/canonical/ubuntu/eks/"
	put("ami-ubuntuold", "x86_64", ubuntu+"22.04/"+v+"/stable/current/amd64/hvm/ebs-gp2/ami-id")
	put("ami-ubuntux86", "x86_64", ubuntu+"24.04/"+v+"/stable/current/amd64/hvm/ebs-gp3/ami-id")
	c.roles["node"] = true
	c.queues[c.config.Cluster] = &queue{url: "", visible: 20 * time.Second}
}

// AddSubnet adds a subnet in a zone.
func (c *Cloud) AddSubnet(id, zone string, free int, tags map[string]string) {
	defer c.lock()()
	zoneID := ""
	for _, z := range c.region.Zones {
		if z.Name == zone {
			zoneID = z.ID
		}
	}
	c.subnets = append(c.subnets, &subnet{id: id, zone: zone, zoneID: zoneID, vpc: "vpc-1", free: free, tags: tags})
}

// SetFreeAddresses is how many addresses a subnet has left.
func (c *Cloud) SetFreeAddresses(id string, free int) {
	defer c.lock()()
	for _, s := range c.subnets {
		if s.id == id {
			s.free = free
		}
	}
}

// AddGroup adds a security group.
func (c *Cloud) AddGroup(id, name string, tags map[string]string) {
	defer c.lock()()
	c.groups = append(c.groups, group{id, name, tags})
}

// AddImage adds an image of the account's own; arch is x86_64 or arm64, and a zero deprecation means never.
func (c *Cloud) AddImage(id, name, arch string, created, deprecated time.Time, tags map[string]string) {
	defer c.lock()()
	c.images = append(c.images, image{id: id, name: name, arch: arch, owner: account, created: created, deprecated: deprecated, tags: tags})
}

// SetParameter changes a parameter; an empty value removes it.
func (c *Cloud) SetParameter(name, value string) {
	defer c.lock()()
	if value == "" {
		delete(c.parameters, name)
		return
	}
	c.parameters[name] = value
}

// AddReservation adds an open capacity reservation, or a capacity block.
func (c *Cloud) AddReservation(id, typ, zone string, count int, block bool, tags map[string]string) {
	defer c.lock()()
	c.reservations = append(c.reservations, &reservation{id: id, typ: typ, zone: zone, owner: account, criteria: "targeted", free: count, total: count, block: block, tags: tags})
}

// SetReservationKind says whether machines of others use a reservation without naming it (criteria open or targeted), and whether its owner may take
// it back.
func (c *Cloud) SetReservationKind(id, criteria string, interruptible bool) {
	defer c.lock()()
	for _, v := range c.reservations {
		if v.id == id {
			v.criteria, v.interruptible = criteria, interruptible
		}
	}
}

// SetReservationEnd is when a reservation ends.
func (c *Cloud) SetReservationEnd(id string, end time.Time) {
	defer c.lock()()
	for _, v := range c.reservations {
		if v.id == id {
			v.end = end
		}
	}
}

// AddPlacementGroup adds a placement group of a strategy: cluster, partition or spread.
func (c *Cloud) AddPlacementGroup(id, name, strategy string, partitions int) {
	defer c.lock()()
	c.placements = append(c.placements, placement{id, name, strategy, partitions})
}

// match says whether a resource passes all filters of a request; fields are the values of the filters that the resource knows.
func match(r request, tags map[string]string, fields map[string]string) (bool, *apiError) {
	for _, f := range r.params.list("Filter") {
		name, values := f.str("Name"), f.strs("Value")
		var have []string
		switch {
		case name == "tag-key":
			have = sortedKeys(tags)
		case strings.HasPrefix(name, "tag:"):
			if v, ok := tags[strings.TrimPrefix(name, "tag:")]; ok {
				have = []string{v}
			}
		default:
			v, ok := fields[name]
			if !ok {
				return false, &apiError{"InvalidParameterValue", fmt.Sprintf("The filter '%s' is invalid", name)}
			}
			have = []string{v}
		}
		if !slices.ContainsFunc(have, func(h string) bool {
			return slices.ContainsFunc(values, func(v string) bool {
				ok, err := path.Match(strings.ReplaceAll(v, "/", "\x00"), strings.ReplaceAll(h, "/", "\x00"))
				return err == nil && ok || v == h
			})
		}) {
			return false, nil
		}
	}
	return true, nil
}

// ids are the parameters that name resources, with the field that is meant, and what is answered where there is none.
var ids = []struct{ parameter, field, missing string }{
	{"SubnetId", "subnet-id", "InvalidSubnetID.NotFound"}, {"ImageId", "image-id", "InvalidAMIID.NotFound"},
	{"CapacityReservationId", "capacity-reservation-id", "InvalidCapacityReservationId.NotFound"},
}

// selected are the elements of a list that pass the filters and that the request means, if it names any.
func selected[T any](r request, all []T, of func(T) (tags, fields map[string]string)) ([]T, *apiError) {
	var out []T
	seen := map[string]bool{}
	for _, t := range all {
		tags, fields := of(t)
		ok, failure := match(r, tags, fields)
		if failure != nil {
			return nil, failure
		}
		for _, id := range ids {
			seen[fields[id.field]] = true
			ok = ok && (!r.params.has(id.parameter) || slices.Contains(r.params.strs(id.parameter), fields[id.field]))
		}
		if ok {
			out = append(out, t)
		}
	}
	for _, id := range ids {
		for _, want := range r.params.strs(id.parameter) {
			if !seen[want] {
				return nil, &apiError{id.missing, fmt.Sprintf("The id '%s' does not exist", want)}
			}
		}
	}
	return out, nil
}

// listing answers with a page of what is selected, as a set of items.
func listing[T any](c *Cloud, r request, all []T, of func(T) (tags, fields map[string]string), set string, elements func(T) []el) (any, *apiError) {
	list, failure := selected(r, all, of)
	if failure != nil {
		return nil, failure
	}
	list, next := page(c, r, list, 1000)
	return append(next, items(set, list, elements)), nil
}

func (c *Cloud) describeSubnets(r request) (any, *apiError) {
	return listing(c, r, c.subnets, func(s *subnet) (tags, fields map[string]string) {
		return s.tags, map[string]string{"subnet-id": s.id, "availability-zone": s.zone, "vpc-id": s.vpc}
	}, "subnetSet", func(s *subnet) []el {
		return []el{
			e("subnetId", s.id), e("availabilityZone", s.zone), e("availabilityZoneId", s.zoneID), e("vpcId", s.vpc), e("ownerId", account),
			e("availableIpAddressCount", s.free), e("state", "available"), tagSet(s.tags),
		}
	})
}

func (c *Cloud) describeSecurityGroups(r request) (any, *apiError) {
	return listing(c, r, c.groups, func(g group) (tags, fields map[string]string) {
		return g.tags, map[string]string{"group-id": g.id, "group-name": g.name}
	}, "securityGroupInfo", func(g group) []el {
		return []el{e("groupId", g.id), e("groupName", g.name), e("vpcId", "vpc-1"), tagSet(g.tags)}
	})
}

func (c *Cloud) describeImages(r request) (any, *apiError) {
	owners := r.params.strs("Owner")
	list := slices.DeleteFunc(slices.Clone(c.images), func(i image) bool {
		alias := map[string]string{account: "self", "602401143452": "amazon"}[i.owner]
		gone := !i.deprecated.IsZero() && !c.now().Before(i.deprecated) && r.params.str("IncludeDeprecated") != "true"
		return gone || len(owners) > 0 && !slices.Contains(owners, i.owner) && !slices.Contains(owners, alias)
	})
	return listing(c, r, list, func(i image) (tags, fields map[string]string) {
		return i.tags, map[string]string{"image-id": i.id, "name": i.name, "state": "available"}
	}, "imagesSet", func(i image) []el {
		out := []el{e("imageId", i.id), e("name", i.name), e("architecture", i.arch), e("creationDate", i.created), e("imageOwnerId", i.owner), e("imageState", "available"), tagSet(i.tags)}
		if !i.deprecated.IsZero() {
			out = append(out, e("deprecationTime", i.deprecated))
		}
		return out
	})
}

func (c *Cloud) describeReservations(r request) (any, *apiError) {
	return listing(c, r, c.reservations, func(v *reservation) (tags, fields map[string]string) {
		return v.tags, map[string]string{"capacity-reservation-id": v.id, "state": "active", "owner-id": v.owner, "instance-match-criteria": v.criteria}
	}, "capacityReservationSet", func(v *reservation) []el {
		kind, end := "default", []el(nil)
		if !v.end.IsZero() {
			end = []el{e("endDate", v.end), e("endDateType", "limited")}
		}
		if v.block {
			kind = "capacity-block"
		}
		return append(end,
			e("capacityReservationId", v.id), e("instanceType", v.typ), e("availabilityZone", v.zone), e("ownerId", v.owner), e("state", "active"),
			e("availableInstanceCount", v.free), e("totalInstanceCount", v.total), e("reservationType", kind), e("instanceMatchCriteria", v.criteria), e("interruptible", v.interruptible), tagSet(v.tags),
		)
	})
}

func (c *Cloud) describePlacementGroups(r request) (any, *apiError) {
	ids, names := r.params.strs("GroupId"), r.params.strs("GroupName")
	var list []placement
	for _, p := range c.placements {
		if slices.Contains(ids, p.id) || slices.Contains(names, p.name) {
			list = append(list, p)
		}
	}
	if len(list) < len(ids)+len(names) {
		return nil, &apiError{"InvalidPlacementGroup.Unknown", "The Placement Group is unknown."}
	}
	return []el{items("placementGroupSet", list, func(p placement) []el {
		return []el{e("groupId", p.id), e("groupName", p.name), e("strategy", p.strategy), e("partitionCount", p.partitions), e("state", "available")}
	})}, nil
}

// RenamePlacementGroup gives a placement group another name.
func (c *Cloud) RenamePlacementGroup(id, name string) {
	defer c.lock()()
	for i := range c.placements {
		if c.placements[i].id == id {
			c.placements[i].name = name
		}
	}
}
