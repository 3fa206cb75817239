package awstest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
)

type instance struct {
	id, typ, zone, image, fleet, token, profile, reserved string
	capacityType                                          string
	subnet                                                *Subnet
	groups                                                []string
	tags                                                  map[string]string
	template                                              *template
	launched, ended                                       time.Time
	tagged                                                time.Time
	oldTags                                               map[string]string
	reason                                                apiError
	protected                                             bool
	failing                                               map[string]time.Time // since when, by check: instance or system
	events                                                []scheduled
}

// scheduled is something that EC2 is going to do.
type scheduled struct {
	id, code, description string
	notBefore             time.Time
}

// FailCheck makes a status check of a machine fail from now on: "instance" or "system". Mend ends
// all failures.
func (c *Cloud) FailCheck(id, check string) {
	defer c.lock()()
	if i, ok := c.instances[id]; ok {
		if i.failing == nil {
			i.failing = map[string]time.Time{}
		}
		i.failing[check] = c.now()
	}
}

// modifyInstance turns the termination protection of a machine on or off.
func (c *Cloud) modifyInstance(r request) (any, *apiError) {
	list, failure := c.named([]string{r.params.str("InstanceId")}, c.seen)
	if failure != nil {
		return nil, failure
	}
	list[0].protected = r.params.str("DisableApiTermination", "Value") == "true"
	return []el{e("return", true)}, nil
}

// Mend lets the status checks of a machine pass again.
func (c *Cloud) Mend(id string) {
	defer c.lock()()
	if i, ok := c.instances[id]; ok {
		i.failing = nil
	}
}

// Schedule announces an event for a machine, such as instance-retirement. EC2 puts
// Completed in brackets before the description of an event that is over.
func (c *Cloud) Schedule(id, code, description string, notBefore time.Time) {
	defer c.lock()()
	if i, ok := c.instances[id]; ok {
		i.events = append(i.events, scheduled{c.id("instance-event"), code, description, notBefore})
	}
}

func (c *Cloud) describeStatus(r request) (any, *apiError) {
	summary := func(i *instance, check string) string {
		if _, ok := i.failing[check]; ok {
			return "impaired"
		}
		return "ok"
	}
	at := c.now().Add(-c.config.Lag)
	var list []*instance
	for _, id := range sortedKeys(c.instances) {
		i := c.instances[id]
		if _, state := c.state(i, at); state != "running" || !c.seen(i) {
			continue
		}
		pass := true
		for _, f := range r.params.list("Filter") {
			var have []string
			switch f.str("Name") {
			case "instance-status.status":
				have = []string{summary(i, "instance")}
			case "system-status.status":
				have = []string{summary(i, "system")}
			case "event.code":
				for _, e := range i.events {
					have = append(have, e.code)
				}
			default:
				return nil, &apiError{"InvalidParameterValue", fmt.Sprintf("The filter '%s' is invalid", f.str("Name"))}
			}
			pass = pass && slices.ContainsFunc(have, func(h string) bool { return slices.Contains(f.strs("Value"), h) })
		}
		if pass {
			list = append(list, i)
		}
	}
	list, next := page(c, r, list, 1000)
	return append(next, items("instanceStatusSet", list, func(i *instance) []el {
		of := func(check string) []el {
			out := []el{e("status", summary(i, check))}
			if since, ok := i.failing[check]; ok {
				out = append(out, e("details", e("item", e("name", "reachability"), e("status", "failed"), e("impairedSince", since))))
			}
			return out
		}
		return []el{
			e("instanceId", i.id), e("availabilityZone", i.zone), e("instanceState", e("code", 16), e("name", "running")),
			e("instanceStatus", of("instance")), e("systemStatus", of("system")),
			items("eventsSet", i.events, func(s scheduled) []el {
				return []el{e("instanceEventId", s.id), e("code", s.code), e("description", s.description), e("notBefore", s.notBefore)}
			}),
		}
	})), nil
}

// launch makes an instance of what was taken.
func (c *Cloud) launch(ch *choice, fleetID, token, reserved string, tags map[string]string) string {
	data := ch.template.data
	i := &instance{
		id: c.id("i"), typ: ch.typ, zone: ch.zone, subnet: ch.subnet, fleet: fleetID, token: token, reserved: reserved,
		template: ch.template, launched: c.now(), capacityType: ch.pool.capacityType,
	}
	if p, ok := c.profiles[data.str("IamInstanceProfile", "Name")]; ok {
		i.profile = p.arn()
	}
	i.image = cmp.Or(ch.image, data.str("ImageId"))
	i.groups = data.strs("SecurityGroupId")
	for _, n := range data.list("NetworkInterface") {
		i.groups = append(i.groups, n.strs("SecurityGroupId")...)
	}
	slices.Sort(i.groups)
	i.groups = slices.Compact(i.groups)
	i.tags = map[string]string{}
	for _, s := range data.list("TagSpecification") {
		if s.str("ResourceType") == "instance" {
			maps.Copy(i.tags, s.tags("Tag"))
		}
	}
	maps.Copy(i.tags, tags)
	i.tags["aws:ec2:fleet-id"], i.tags["aws:ec2launchtemplate:id"] = fleetID, ch.template.id
	c.instances[i.id] = i
	if c.fate != nil {
		c.end(i, *c.fate)
	}
	return i.id
}

// end removes a machine and frees what it used.
func (c *Cloud) end(i *instance, reason apiError) {
	if !i.ended.IsZero() {
		return
	}
	cited(api.State, reason.code)
	i.ended, i.reason = c.now(), reason
	i.subnet.Free++
	p := pool{i.typ, i.zone, i.capacityType}
	if n, ok := c.capacity[p]; ok && i.reserved == "" {
		c.capacity[p] = n + 1
	}
}

// state returns the code and the name of the state at a time.
func (c *Cloud) state(i *instance, at time.Time) (int, string) {
	switch {
	case i.ended.IsZero() || at.Before(i.ended):
		if at.Before(i.launched.Add(c.config.Boot)) {
			return 0, "pending"
		}
		return 16, "running"
	case at.Before(i.ended.Add(c.config.Shutdown)):
		return 32, "shutting-down"
	default:
		return 48, "terminated"
	}
}

// seen reports whether readers already know the instance.
func (c *Cloud) seen(i *instance) bool { return !c.now().Before(i.launched.Add(c.config.Lag)) }

// sweep removes instances that are no longer shown, and fleets whose client tokens have expired.
func (c *Cloud) sweep() {
	now := c.now()
	if now.Sub(c.swept) < c.config.Linger/4 {
		return
	}
	c.swept = now
	for id, i := range c.instances {
		if !i.ended.IsZero() && now.Sub(i.ended) > c.config.Shutdown+c.config.Linger+c.config.Lag {
			delete(c.instances, id)
		}
	}
	for token, f := range c.fleets {
		if now.Sub(f.made) >= c.config.Tokens {
			delete(c.fleets, token)
		}
	}
}

func (c *Cloud) describeInstances(r request) (any, *apiError) {
	ids := r.params.strs("InstanceId")
	all, failure := c.named(ids, c.seen)
	if failure != nil {
		return nil, failure
	}
	if len(ids) == 0 {
		for _, id := range sortedKeys(c.instances) {
			if i := c.instances[id]; c.seen(i) {
				all = append(all, i)
			}
		}
	}
	at := c.now().Add(-c.config.Lag)
	list, failure := selected(r, all, func(i *instance) (map[string]string, map[string]string) {
		_, state := c.state(i, at)
		return c.shownTags(i), map[string]string{"instance-state-name": state, "instance-id": i.id, "availability-zone": i.zone, "client-token": i.token, "iam-instance-profile.arn": i.profile}
	})
	if failure != nil {
		return nil, failure
	}
	// Tokens name the last instance of a page, so that instances that end in between cause no gaps.
	// Larger ids come first.
	slices.Reverse(list)
	after := r.params.str("NextToken")
	list = slices.DeleteFunc(list, func(i *instance) bool { return i.id >= after && after != "" })
	size := min(cmp.Or(r.params.num("MaxResults"), 1000), cmp.Or(c.config.Page, 1000))
	var answer []el
	if len(list) > size {
		list = list[:size]
		answer = append(answer, e("nextToken", list[size-1].id))
	}
	return append(answer, items("reservationSet", list, func(i *instance) []el {
		return []el{e("reservationId", "r-"+i.id[2:]), e("ownerId", account), e("instancesSet", e("item", c.elements(i, at)))}
	})), nil
}

func (c *Cloud) shownTags(i *instance) map[string]string {
	if i.oldTags != nil && c.now().Before(i.tagged.Add(c.config.Lag)) {
		return i.oldTags
	}
	return i.tags
}

func (c *Cloud) elements(i *instance, at time.Time) []el {
	code, state := c.state(i, at)
	out := []el{
		e("instanceId", i.id), e("imageId", i.image), e("instanceType", i.typ), e("launchTime", i.launched),
		e("instanceState", e("code", code), e("name", state)), e("placement", append(c.placed(i), e("availabilityZone", i.zone), e("tenancy", "default"))),
		tagSet(c.shownTags(i)), e("clientToken", i.token),
	}
	if i.capacityType == "spot" {
		out = append(out, e("instanceLifecycle", "spot"))
	}
	if i.template.data.str("EnclaveOptions", "Enabled") == "true" {
		out = append(out, e("enclaveOptions", e("enabled", true)))
	}
	if i.reserved != "" {
		out = append(out, e("capacityReservationId", i.reserved))
		preference := cmp.Or(i.template.data.str("CapacityReservationSpecification", "CapacityReservationPreference"), "open")
		out = append(out, e("capacityReservationSpecification", e("capacityReservationPreference", preference)))
	}
	if i.profile != "" {
		out = append(out, e("iamInstanceProfile", e("arn", i.profile), e("id", "AIPA")))
	}
	if state != "terminated" {
		out = append(out, e("subnetId", i.subnet.ID), e("vpcId", vpc),
			items("groupSet", i.groups, func(g string) []el { return []el{e("groupId", g)} }))
	} else {
		out = append(out, e("stateReason", e("code", i.reason.code), e("message", i.reason.message)), e("reason", i.reason.message))
	}
	return out
}

// placed returns the placement group of a machine and its partition. EC2 chooses the partition if
// the template names none.
func (c *Cloud) placed(i *instance) []el {
	id := i.template.data.str("Placement", "GroupId")
	at := slices.IndexFunc(c.placements, func(p *PlacementGroup) bool { return p.ID == id })
	if at < 0 {
		return nil
	}
	out := []el{e("groupId", id), e("groupName", c.placements[at].Name)}
	if n := c.placements[at].Partitions; n > 0 {
		chosen := i.template.data.num("Placement", "PartitionNumber")
		if chosen == 0 {
			chosen = int(i.id[len(i.id)-1])%n + 1
		}
		out = append(out, e("partitionNumber", chosen))
	}
	return out
}

// named returns the instances with these ids. One missing or unknown instance makes the whole call
// fail.
func (c *Cloud) named(ids []string, known func(*instance) bool) ([]*instance, *apiError) {
	var all []*instance
	var missing []string
	for _, id := range ids {
		if !strings.HasPrefix(id, "i-") {
			return nil, &apiError{"InvalidInstanceID.Malformed", fmt.Sprintf("Invalid id: %q", id)}
		}
		if i, ok := c.instances[id]; ok && known(i) {
			all = append(all, i)
		} else {
			missing = append(missing, id)
		}
	}
	switch len(missing) {
	case 0:
		return all, nil
	case 1:
		return nil, &apiError{"InvalidInstanceID.NotFound", fmt.Sprintf("The instance ID '%s' does not exist", missing[0])}
	default:
		return nil, &apiError{"InvalidInstanceID.NotFound", fmt.Sprintf("The instance IDs '%s' do not exist", strings.Join(missing, ", "))}
	}
}

func (c *Cloud) terminateInstances(r request) (any, *apiError) {
	list, failure := c.named(r.params.strs("InstanceId"), c.seen)
	if failure != nil {
		return nil, failure
	}
	now, asked := c.now(), apiError{"Client.UserInitiatedShutdown", "Client.UserInitiatedShutdown: User initiated shutdown"}
	// A protected machine makes the call fail for its zone. In other zones machines are ended, but
	// the answer does not say so.
	spoiled, guilty := map[string]bool{}, ""
	for _, i := range list {
		if i.protected {
			spoiled[i.zone], guilty = true, i.id
		}
	}
	if guilty != "" {
		for _, i := range list {
			if !spoiled[i.zone] {
				c.end(i, asked)
			}
		}
		return nil, &apiError{"OperationNotPermitted", fmt.Sprintf("The instance '%s' may not be terminated. Modify its 'disableApiTermination' instance attribute and try again.", guilty)}
	}
	return []el{items("instancesSet", list, func(i *instance) []el {
		before, was := c.state(i, now)
		c.end(i, asked)
		after, is := c.state(i, now)
		return []el{
			e("instanceId", i.id), e("previousState", e("code", before), e("name", was)), e("currentState", e("code", after), e("name", is)),
		}
	})}, nil
}

func (c *Cloud) createTags(r request) (any, *apiError) {
	tags := r.params.tags("Tag")
	list, failure := c.named(r.params.strs("ResourceId"), func(*instance) bool { return true })
	if failure != nil {
		return nil, failure
	}
	for _, i := range list {
		all := maps.Clone(i.tags)
		maps.Copy(all, tags)
		own := 0
		for k := range all {
			if !strings.HasPrefix(k, "aws:") {
				own++
			}
		}
		if own > 50 {
			return nil, &apiError{"TagLimitExceeded", "More than 50 tags on " + i.id}
		}
	}
	for _, i := range list {
		i.oldTags, i.tagged = maps.Clone(i.tags), c.now()
		maps.Copy(i.tags, tags)
	}
	return []el{e("return", true)}, nil
}

// Machine is the true state of an instance, whatever readers see.
type Machine struct {
	ID, Type, Zone, CapacityType, Image, Subnet, Fleet, Reservation string
	Tags                                                            map[string]string
	Launched                                                        time.Time
}

// Truth returns the instances that have not been ended, by id.
func (c *Cloud) Truth() []Machine {
	defer c.lock()()
	var out []Machine
	for _, id := range sortedKeys(c.instances) {
		if i := c.instances[id]; i.ended.IsZero() {
			out = append(out, Machine{i.id, i.typ, i.zone, i.capacityType, i.image, i.subnet.ID, i.fleet, i.reserved, maps.Clone(i.tags), i.launched})
		}
	}
	return out
}

// End ends an instance for a reason, as EC2 does with spot instances.
func (c *Cloud) End(id, code, message string) {
	defer c.lock()()
	if i, ok := c.instances[id]; ok {
		c.end(i, apiError{code, message})
	}
}

// Adopt adds a machine that was launched earlier, with the given tags, as if its launch template
// had been deleted since.
func (c *Cloud) Adopt(m Machine) {
	defer c.lock()()
	i := &instance{
		id: m.ID, typ: m.Type, zone: m.Zone, capacityType: m.CapacityType, image: m.Image, fleet: m.Fleet, reserved: m.Reservation, tags: maps.Clone(m.Tags),
		launched: m.Launched, template: &template{data: &params{}}, groups: []string{"sg-1"},
	}
	for _, s := range c.subnets {
		if s.ID == m.Subnet {
			i.subnet = s
		}
	}
	c.instances[m.ID] = i
	c.serial += 1000 // so that earlier ids are not assigned again
}

// Retag changes tags of a machine without the caller's knowledge. An empty value removes a tag.
func (c *Cloud) Retag(id string, tags map[string]string) {
	defer c.lock()()
	for k, v := range tags {
		c.instances[id].tags[k] = v
		if v == "" {
			delete(c.instances[id].tags, k)
		}
	}
}
