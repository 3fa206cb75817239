package awstest

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// Thing is something that a cloud may contain from the start: a [Subnet], [Group], [Image],
// [Reservation] or [PlacementGroup].
type Thing interface{ put(*Cloud) }

// Subnet is a subnet of the cluster's network. Free is how many addresses are left.
type Subnet struct {
	ID, Zone string
	Free     int
	Tags     map[string]string
}

// Group is a security group.
type Group struct {
	ID, Name string
	Tags     map[string]string
}

// Image is a machine image for x86_64 or arm64. Without an Owner it belongs to the account. A zero
// Deprecated means never.
type Image struct {
	ID, Name, Arch, Owner string
	Created, Deprecated   time.Time
	Tags                  map[string]string
}

// Reservation is a capacity reservation for Count machines. Open means that other machines use it
// without naming it. Block means that it is a capacity block. Interruptible means that its owner
// may take it back. A zero End means never.
type Reservation struct {
	ID, Type, Zone             string
	Count                      int
	Open, Block, Interruptible bool
	End                        time.Time
	Tags                       map[string]string
}

// PlacementGroup is a placement group. Strategy is cluster, partition or spread; Partitions is the
// number of partitions of a partition group.
type PlacementGroup struct {
	ID, Name, Strategy string
	Partitions         int
}

// Put adds things to the cloud, or replaces those of the same kind and id.
func (c *Cloud) Put(things ...Thing) {
	defer c.lock()()
	for _, t := range things {
		t.put(c)
	}
}

func (s Subnet) put(c *Cloud) { put(&c.subnets, s, func(s *Subnet) string { return s.ID }) }
func (g Group) put(c *Cloud)  { put(&c.groups, g, func(g *Group) string { return g.ID }) }
func (v Reservation) put(c *Cloud) {
	put(&c.reservations, v, func(v *Reservation) string { return v.ID })
}

func (p PlacementGroup) put(c *Cloud) {
	put(&c.placements, p, func(p *PlacementGroup) string { return p.ID })
}

func (i Image) put(c *Cloud) {
	i.Owner = cmp.Or(i.Owner, account)
	put(&c.images, i, func(i *Image) string { return i.ID })
}

func put[T any](list *[]*T, t T, id func(*T) string) {
	if at := slices.IndexFunc(*list, func(have *T) bool { return id(have) == id(&t) }); at >= 0 {
		*(*list)[at] = t
		return
	}
	*list = append(*list, &t)
}

// account is the account that owns everything here.
const account = "111122223333"

// vpc is the network that contains everything.
const vpc = "vpc-1"

// furnish makes a network, images and parameters for the cluster: two subnets in each of three
// zones, two security groups, images of every kind, a role and a queue.
func (c *Cloud) furnish() {
	cluster := map[string]string{"cluster": c.config.Cluster}
	for i, z := range c.region.Zones[:min(3, len(c.region.Zones))] {
		for j, free := range []int{4000, 250} {
			c.Put(Subnet{
				ID: fmt.Sprintf("subnet-%d%d", i, j), Zone: z.Name, Free: free,
				Tags: map[string]string{"cluster": c.config.Cluster, "Name": fmt.Sprintf("private-%d-%d", i, j)},
			})
		}
	}
	c.Put(Group{"sg-1", "nodes", cluster}, Group{"sg-2", "shared", map[string]string{"team": "base"}})
	for _, arch := range []string{"x86_64", "arm64"} {
		for i, name := range []string{"old", "new"} {
			c.Put(Image{
				ID: "ami-" + name + strings.ReplaceAll(arch, "_", ""), Name: "own-" + name + "-" + arch, Arch: arch,
				Created: time.Date(2026, time.Month(1+i), 1, 0, 0, 0, 0, time.UTC), Tags: cluster,
			})
		}
	}
	put := func(id, arch string, paths ...string) {
		c.Put(Image{ID: id, Name: id, Arch: arch, Owner: "602401143452", Created: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)})
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
	if v <= "1.32" { // the last one that AL2 has images for
		put("ami-al2x86", "x86_64", al2+"/recommended/image_id")
		put("ami-al2arm", "arm64", al2+"-arm64/recommended/image_id")
		put("ami-al2gpu", "x86_64", al2+"-gpu/recommended/image_id")
	}
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

// SetFreeAddresses sets how many addresses a subnet has left.
func (c *Cloud) SetFreeAddresses(id string, free int) {
	defer c.lock()()
	for _, s := range c.subnets {
		if s.ID == id {
			s.Free = free
		}
	}
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

// match reports whether a resource passes all filters of a request. fields are the values of the
// filters that the resource supports.
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

// ids are the parameters that name resources. Each has the field that it names, and the error code
// for a resource that does not exist.
var ids = []struct{ parameter, field, missing string }{
	{"SubnetId", "subnet-id", "InvalidSubnetID.NotFound"},
	{"ImageId", "image-id", "InvalidAMIID.NotFound"},
	{"CapacityReservationId", "capacity-reservation-id", "InvalidCapacityReservationId.NotFound"},
}

// selected returns the elements of a list that pass the filters and that the request names, if it
// names any.
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

// listing returns a page of what is selected, as a set of items.
func listing[T any](c *Cloud, r request, all []T, of func(T) (tags, fields map[string]string), set string, elements func(T) []el) (any, *apiError) {
	list, failure := selected(r, all, of)
	if failure != nil {
		return nil, failure
	}
	list, next := page(c, r, list, 1000)
	return append(next, items(set, list, elements)), nil
}

func (c *Cloud) describeSubnets(r request) (any, *apiError) {
	return listing(c, r, c.subnets, func(s *Subnet) (tags, fields map[string]string) {
		return s.Tags, map[string]string{"subnet-id": s.ID, "availability-zone": s.Zone, "vpc-id": vpc}
	}, "subnetSet", func(s *Subnet) []el {
		return []el{
			e("subnetId", s.ID), e("availabilityZone", s.Zone), e("availabilityZoneId", c.zoneID(s.Zone)), e("vpcId", vpc), e("ownerId", account),
			e("availableIpAddressCount", s.Free), e("state", "available"), tagSet(s.Tags),
		}
	})
}

func (c *Cloud) describeSecurityGroups(r request) (any, *apiError) {
	return listing(c, r, c.groups, func(g *Group) (tags, fields map[string]string) {
		return g.Tags, map[string]string{"group-id": g.ID, "group-name": g.Name}
	}, "securityGroupInfo", func(g *Group) []el {
		return []el{e("groupId", g.ID), e("groupName", g.Name), e("vpcId", vpc), tagSet(g.Tags)}
	})
}

func (c *Cloud) describeImages(r request) (any, *apiError) {
	owners := r.params.strs("Owner")
	list := slices.DeleteFunc(slices.Clone(c.images), func(i *Image) bool {
		alias := map[string]string{account: "self", "602401143452": "amazon"}[i.Owner]
		gone := !i.Deprecated.IsZero() && !c.now().Before(i.Deprecated) && r.params.str("IncludeDeprecated") != "true"
		return gone || len(owners) > 0 && !slices.Contains(owners, i.Owner) && !slices.Contains(owners, alias)
	})
	return listing(c, r, list, func(i *Image) (tags, fields map[string]string) {
		return i.Tags, map[string]string{"image-id": i.ID, "name": i.Name, "state": "available"}
	}, "imagesSet", func(i *Image) []el {
		out := []el{e("imageId", i.ID), e("name", i.Name), e("architecture", i.Arch), e("creationDate", i.Created), e("imageOwnerId", i.Owner), e("imageState", "available"), tagSet(i.Tags)}
		if !i.Deprecated.IsZero() {
			out = append(out, e("deprecationTime", i.Deprecated))
		}
		return out
	})
}

func (v Reservation) criteria() string {
	if v.Open {
		return "open"
	}
	return "targeted"
}

// left returns how many machines a reservation has left.
func (c *Cloud) left(v *Reservation) int {
	n := v.Count
	for _, i := range c.instances {
		if i.reserved == v.ID && i.ended.IsZero() {
			n--
		}
	}
	return n
}

func (c *Cloud) describeReservations(r request) (any, *apiError) {
	return listing(c, r, c.reservations, func(v *Reservation) (tags, fields map[string]string) {
		return v.Tags, map[string]string{"capacity-reservation-id": v.ID, "state": "active", "owner-id": account, "instance-match-criteria": v.criteria()}
	}, "capacityReservationSet", func(v *Reservation) []el {
		kind, end := "default", []el(nil)
		if !v.End.IsZero() {
			end = []el{e("endDate", v.End), e("endDateType", "limited")}
		}
		if v.Block {
			kind = "capacity-block"
		}
		return append(end,
			e("capacityReservationId", v.ID), e("instanceType", v.Type), e("availabilityZone", v.Zone), e("ownerId", account), e("state", "active"),
			e("availableInstanceCount", c.left(v)), e("totalInstanceCount", v.Count), e("reservationType", kind), e("instanceMatchCriteria", v.criteria()), e("interruptible", v.Interruptible), tagSet(v.Tags),
		)
	})
}

func (c *Cloud) describePlacementGroups(r request) (any, *apiError) {
	ids, names := r.params.strs("GroupId"), r.params.strs("GroupName")
	var list []*PlacementGroup
	for _, p := range c.placements {
		if slices.Contains(ids, p.ID) || slices.Contains(names, p.Name) {
			list = append(list, p)
		}
	}
	if len(list) < len(ids)+len(names) {
		return nil, &apiError{"InvalidPlacementGroup.Unknown", "The Placement Group is unknown."}
	}
	return []el{items("placementGroupSet", list, func(p *PlacementGroup) []el {
		return []el{e("groupId", p.ID), e("groupName", p.Name), e("strategy", p.Strategy), e("partitionCount", p.Partitions), e("state", "available")}
	})}, nil
}
