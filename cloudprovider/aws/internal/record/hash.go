package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

// Version is the version of the hashes that this program writes and can compare. Records without a
// version have version 1. If a change alters the hash of today's values, it needs a new version.
// Machines of other versions are not compared, so an upgrade replaces none.
const Version = 1

// fields are the fields that version 1 always writes, in this order, whatever fields the struct has
// gained since.
func fields(name string) []string {
	return strings.Fields(map[string]string{
		"NodeClass": "Kind APIVersion Name Family AMIs Subnets SecurityGroups CapacityReservations PlacementGroup Role InstanceProfile LaunchTemplate UserData Context Tags " +
			"BlockDevices RAID0 Metadata DetailedMonitoring AssociatePublicIP IPPrefixCount NetworkInterfaces ConnectionTracking NestedVirtualization Kubelet Status",
		"PlacementGroup":     "Name ID",
		"BlockDevice":        "Device Root Bytes Type IOPS Throughput InitializationRate KMSKeyID Snapshot Encrypted DeleteOnTermination",
		"MetadataOptions":    "Endpoint IPv6 HopLimit Tokens",
		"NetworkInterface":   "Card Device Type",
		"ConnectionTracking": "TCPEstablished UDPStream UDP",
		"Kubelet": "ClusterDNS MaxPods PodsPerCore KubeReserved SystemReserved EvictionHard EvictionSoft EvictionSoftGracePeriod EvictionMaxPodGracePeriod " +
			"ImageGCHighThresholdPercent ImageGCLowThresholdPercent CPUCFSQuota",
		"Status": "Subnets SecurityGroups AMIs InstanceProfile",
	}[name])
}

// ClassHash returns a hash of what a node class itself says about machines, without what it selects
// and what others found. A field that is newer than version 1 counts only if it is set, so an
// upgrade changes no hash.
func ClassHash(c nodeclass.NodeClass) string {
	c.AMIs, c.Subnets, c.SecurityGroups, c.CapacityReservations = nil, nil, nil, nil
	c.Status, c.Kind, c.APIVersion, c.Name = nodeclass.Status{}, "", "", ""
	var b bytes.Buffer
	if err := write(&b, reflect.ValueOf(c)); err != nil {
		return "" // a class that cannot be written cannot be compared
	}
	return short(b.Bytes())
}

func short(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// write writes JSON, except for structs, whose fields are named here.
func write(b *bytes.Buffer, v reflect.Value) error {
	list := []string(nil)
	if v.Kind() == reflect.Struct {
		list = fields(v.Type().Name())
	}
	switch {
	case v.Kind() == reflect.Pointer && !v.IsNil():
		return write(b, v.Elem())
	case v.Kind() == reflect.Slice && v.Len() > 0:
		for i := range v.Len() {
			b.WriteByte("[,"[min(i, 1)])
			if err := write(b, v.Index(i)); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	case list != nil:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; !slices.Contains(list, name) && !v.Field(i).IsZero() {
				list = append(list, name)
			}
		}
		slices.Sort(list[len(fields(v.Type().Name())):])
		for i, name := range list {
			fmt.Fprintf(b, "%c%q:", "{,"[min(i, 1)], name)
			field := v.FieldByName(name)
			if !field.IsValid() {
				return fmt.Errorf("record: %s has no field %s any more", v.Type().Name(), name)
			}
			if err := write(b, field); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	default:
		text, err := json.Marshal(v.Interface())
		if err != nil {
			return fmt.Errorf("record: %w", err)
		}
		b.Write(text)
	}
	return nil
}

// lines collects the input of a hash, with one line for each named part.
type lines struct{ strings.Builder }

func (l *lines) add(parts ...string) { fmt.Fprintf(l, "%q\n", parts) }

func (l *lines) claim(c cloudprovider.NodeClaim, requests, candidates func()) string {
	l.add("pool", c.Pool, c.NodeClass.Group, c.NodeClass.Kind, c.NodeClass.Name, c.Requirements.String())
	requests()
	candidates()
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

// Identity returns a hash of everything in a claim except its name and token. It distinguishes a
// repeated claim from one that was changed.
func Identity(c cloudprovider.NodeClaim) string {
	var l lines
	return l.claim(c, func() {
		for _, name := range resources.Names(c.Requests) {
			l.add("request", string(name), strconv.FormatInt(resources.Request(name, c.Requests[name]), 10))
		}
	}, func() {
		for _, cand := range c.Candidates {
			l.add("candidate", cand.String())
		}
	})
}

// Shape returns a hash of what determines how a claim is launched: claims of one shape become one
// fleet. Of the requests it contains only the special ones, those that change the machine. Of the
// candidates it contains the set, and the order in which capacity types first occur.
func Shape(c cloudprovider.NodeClaim, special []string, capacityType func(cloudprovider.Candidate) string) string {
	var l lines
	return l.claim(c, func() { l.add(append([]string{"special"}, special...)...) }, func() {
		var all, kinds []string
		for _, cand := range c.Candidates {
			all = append(all, cand.String())
			if kind := capacityType(cand); !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
			}
		}
		slices.Sort(all)
		l.add(append([]string{"candidates"}, all...)...)
		l.add(append([]string{"capacity types"}, kinds...)...)
	})
}
