package record

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

// Version is the version of the hashes that this program writes and can compare. Records without a
// version have version 1. If a change alters the hash of today's values, it needs a new version.
// Machines of other versions are not compared, so an upgrade replaces none.
const Version = 1

// ClassHash returns a hash of what a node class itself says about machines, without what it selects
// and what others found. It is a hash of the class's JSON. A field that is newer than version 1
// comes last in its struct and is omitted if it is zero, so an upgrade changes no hash.
func ClassHash(c nodeclass.NodeClass) string {
	c.AMIs, c.Subnets, c.SecurityGroups, c.CapacityReservations = nil, nil, nil, nil
	c.Status, c.Kind, c.APIVersion, c.Name = nodeclass.Status{}, "", "", ""
	text, err := json.Marshal(c)
	if err != nil {
		return "" // a class that cannot be written cannot be compared
	}
	return short(text)
}

func short(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// lines collects the input of a hash, with one line for each named part.
type lines struct{ strings.Builder }

func (l *lines) add(parts ...string) { fmt.Fprintf(l, "%q\n", parts) }

// Identity returns a hash of everything in a claim except its name and token. It distinguishes a
// repeated claim from one that was changed.
func Identity(c cloudprovider.NodeClaim) string {
	var l lines
	l.add("pool", c.Pool, c.NodeClass.Group, c.NodeClass.Kind, c.NodeClass.Name, c.Requirements.String())
	for _, name := range resources.Names(c.Requests) {
		l.add("request", string(name), strconv.FormatInt(resources.Request(name, c.Requests[name]), 10))
	}
	for _, cand := range c.Candidates {
		l.add("candidate", cand.String())
	}
	for _, key := range slices.Sorted(maps.Keys(c.Labels)) {
		l.add("label", key, c.Labels[key])
	}
	for _, t := range c.Taints {
		l.add("taint", t.Key, t.Value, string(t.Effect))
	}
	for _, t := range c.StartupTaints {
		l.add("startup", t.Key, t.Value, string(t.Effect))
	}
	return short([]byte(l.String()))
}

// Shape returns a text that is equal for claims that are launched alike: they become one fleet. Of
// the requests only the special ones count, those that change the machine, and only whether there
// are any. Of the candidates the set counts, and the order in which capacity types first occur.
func Shape(c cloudprovider.NodeClaim, special ...corev1.ResourceName) string {
	requests := corev1.ResourceList{}
	for _, name := range special {
		if q := c.Requests[name]; q.Sign() > 0 {
			requests[name] = resource.MustParse("1")
		}
	}
	var all, kinds []string
	for _, cand := range c.Candidates {
		all = append(all, cand.String())
		kind, _ := cand.Offering.Get(instancetypes.LabelCapacityType).Single()
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(all)
	var l lines
	l.add(all...)
	l.add(kinds...)
	c.Requests, c.Candidates = requests, nil
	return Identity(c) + " " + short([]byte(l.String()))
}
