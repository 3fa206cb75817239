package resources

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// CountsVolumes reports whether the resource counts the volumes that a CSI driver has attached to a
// node. Its name is "attachable-volumes-csi-" and the name of the driver. Nodes never list such a
// resource (their CSINode has the limit). A type without it accepts any number of volumes.
func CountsVolumes(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), "attachable-volumes-csi-")
}
