package record_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
)

// versionOne are the fields that version 1 of the hash always writes, in this order.
var versionOne = map[string]string{
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
}

// A struct that has gained a field since version 1 has the hash of version 1 as long as the field is not set: such a field comes last, and JSON leaves
// out its zero value. Selectors, and what was found, are not hashed, so Term, Subnet and Reservation may gain any.
func TestNewFieldsChangeNoHash(t *testing.T) {
	seen := map[string]bool{}
	var walk func(of reflect.Type)
	walk = func(of reflect.Type) {
		switch {
		case of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map:
			walk(of.Elem())
		case of.Kind() == reflect.Struct && of.PkgPath() == reflect.TypeFor[nodeclass.NodeClass]().PkgPath() && !seen[of.Name()] && !slices.Contains([]string{"Term", "Subnet", "Reservation"}, of.Name()):
			seen[of.Name()] = true
			known := strings.Fields(versionOne[of.Name()])
			assert.NotEmpty(t, known, of.Name())
			i := 0
			for field := range of.Fields() {
				if i < len(known) {
					assert.Equal(t, known[i], field.Name, of.Name())
					assert.Empty(t, field.Tag, "%s.%s", of.Name(), field.Name)
				} else {
					assert.Equal(t, reflect.StructTag(`json:",omitzero"`), field.Tag, "%s.%s", of.Name(), field.Name)
				}
				i++
				walk(field.Type)
			}
		}
	}
	walk(reflect.TypeFor[nodeclass.NodeClass]())
	assert.Len(t, seen, len(versionOne))
}
