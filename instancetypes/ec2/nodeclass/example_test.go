package nodeclass_test

import (
	"encoding/json"
	"errors"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
)

// decoded is an EC2NodeClass with the given fields of spec besides those that every class needs, in YAML.
func decoded(more string) (nodeclass.NodeClass, error) {
	data, err := yaml.YAMLToJSON([]byte(`
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec:
  role: nodes
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {tier: private, team: "*"}}]
  securityGroupSelectorTerms: [{id: sg-1}]
` + more))
	if err != nil {
		return nodeclass.NodeClass{}, err
	}
	return nodeclass.Decode(json.RawMessage(data))
}

// A term matches what has all that it names; of several terms one is enough.
func ExampleTerm() {
	c, err := decoded("")
	if err != nil {
		fmt.Println(err)
		return
	}
	show := func(kind string, terms []nodeclass.Term) {
		for _, t := range terms {
			fmt.Printf("%s: ids %v, alias %q\n", kind, t.IDs, t.Alias)
			for _, tag := range t.Tags {
				fmt.Println("  with tag", tag.Key, tag.Values)
			}
		}
	}
	show("subnets", c.Subnets)
	show("groups", c.SecurityGroups)
	show("images", c.AMIs)
	// Output:
	// subnets: ids [], alias ""
	//   with tag team [*]
	//   with tag tier [private]
	// groups: ids [sg-1], alias ""
	// images: ids [], alias "al2023@latest"
}

// A tag selects by values, with wildcards; no values mean that any will do.
func ExampleTag() {
	for _, t := range []nodeclass.Tag{{Key: "team", Values: []string{"blue", "green-*"}}, {Key: "team"}} {
		fmt.Println(t.Key, "is any of", t.Values, "- any at all:", len(t.Values) == 0)
	}
	// Output:
	// team is any of [blue green-*] - any at all: false
	// team is any of [] - any at all: true
}

// Faults are found all at once, each with its object and path.
func ExampleFieldError() {
	_, err := decoded("  metadataOptions: {httpTokens: always}\n  rolle: nodes\n")
	if fault, ok := errors.AsType[*nodeclass.FieldError](err); ok {
		fmt.Println(fault.Object, "at", fault.Path)
	}
	fmt.Println(err)
	// Output:
	// EC2NodeClass default at spec.rolle
	// nodeclass: EC2NodeClass default: spec.rolle: no such field (did you mean "role"?)
	// nodeclass: EC2NodeClass default: spec.metadataOptions.httpTokens: "always": want one of required, optional
}

// What a class says of the kubelet counts for what pods can use of its nodes.
func ExampleKubelet() {
	c, err := decoded("  kubelet: {maxPods: 40, systemReserved: {cpu: 100m}, clusterDNS: [10.100.0.10]}\n")
	if err != nil {
		fmt.Println(err)
		return
	}
	k := c.Kubelet
	fmt.Println(*k.MaxPods, k.SystemReserved.Cpu(), k.ClusterDNS)
	fmt.Println(*c.Settings().Kubelet.MaxPods)
	// Output:
	// 40 100m [10.100.0.10]
	// 40
}

// Left out options have the defaults of the API: tokens are required, and containers cannot reach the service.
func ExampleMetadataOptions() {
	for _, more := range []string{"", "  metadataOptions: {httpTokens: optional, httpPutResponseHopLimit: 2}\n"} {
		c, err := decoded(more)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("endpoint %s, tokens %s, %d hops\n", c.Metadata.Endpoint, c.Metadata.Tokens, c.Metadata.HopLimit)
	}
	// Output:
	// endpoint enabled, tokens required, 1 hops
	// endpoint enabled, tokens optional, 2 hops
}

// Machines that talk to each other a lot: close together, with interfaces for that, and idle connections forgotten early.
func ExampleNetworkInterface() {
	c, err := decoded(`
  placementGroupSelector: {name: near}
  connectionTracking: {tcpEstablishedTimeout: 600}
  networkInterfaces:
  - {networkCardIndex: 0, deviceIndex: 0, interfaceType: interface}
  - {networkCardIndex: 1, deviceIndex: 1, interfaceType: efa-only}
`)
	if err != nil {
		fmt.Println(err)
		return
	}
	together := func(g nodeclass.PlacementGroup) string { return "in group " + g.Name }
	idle := func(t nodeclass.ConnectionTracking) string {
		return fmt.Sprintf("idle connections end after %d seconds", t.TCPEstablished)
	}
	fmt.Println(together(*c.PlacementGroup), "-", idle(*c.ConnectionTracking))
	for _, n := range c.NetworkInterfaces {
		fmt.Printf("card %d, device %d: %s\n", n.Card, n.Device, n.Type)
	}
	// Output:
	// in group near - idle connections end after 600 seconds
	// card 0, device 0: interface
	// card 1, device 1: efa-only
}

// A class that a controller has seen says in its status what its terms select.
func ExampleStatus() {
	c, err := decoded(`
status:
  amis: [{id: ami-1, requirements: []}]
  securityGroups: [{id: sg-1}]
  subnets: [{id: subnet-1, zone: us-east-1a, zoneID: use1-az2}, {id: subnet-2, zone: us-east-1b, zoneID: use1-az4}]
`)
	if err != nil {
		fmt.Println(err)
		return
	}
	byZone := map[string]nodeclass.Subnet{}
	for _, s := range c.Status.Subnets {
		byZone[s.Zone] = s
	}
	for _, zone := range c.Zones() {
		fmt.Println(zone, byZone[zone].ZoneID, byZone[zone].ID)
	}
	fmt.Println(c.Status.SecurityGroups, c.Status.AMIs)
	// Output:
	// us-east-1a use1-az2 subnet-1
	// us-east-1b use1-az4 subnet-2
	// [sg-1] [ami-1]
}

func ExampleDecodeAuto() {
	class, err := nodeclass.DecodeAuto([]byte(`{"apiVersion": "eks.amazonaws.com/v1", "kind": "NodeClass", "metadata": {"name": "default"}}`))
	fmt.Println(class.Name, class.Family, class.BlockDevices[0].Bytes>>30, err)
	// Output: default Bottlerocket 80 <nil>
}

// The status of a class lists the reservations that it selects. How many instances are free, only
// EC2 says.
func ExampleReservation() {
	class, err := decoded("status: {capacityReservations: [{id: cr-1, instanceType: m5.large, availabilityZone: us-east-1a}]}")
	if err != nil {
		fmt.Println(err)
		return
	}
	show := func(r nodeclass.Reservation) { fmt.Println(r.ID, r.State, r.Type, r.Free == nil) }
	show(class.Status.Reservations[0])
	// Output: cr-1 active default true
}
