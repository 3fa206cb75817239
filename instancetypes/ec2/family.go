package ec2

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joinery-sdk/joinery/requirements"
)

// Family is the family of machine images that a node boots from. It determines the kubelet's
// configuration and so what the kubelet reserves. The zero value is AL2023.
type Family string

// The families.
const (
	AL2          Family = "AL2"
	AL2023       Family = "AL2023"
	Bottlerocket Family = "Bottlerocket"
	Ubuntu       Family = "Ubuntu"
	Windows2019  Family = "Windows2019"
	Windows2022  Family = "Windows2022"
	Windows2025  Family = "Windows2025"
	// Custom is an image of your own. Its sizes are those of AL2023, except that its ephemeral
	// storage is the root volume, or else the last block device.
	Custom Family = "Custom"
)

// Families returns the families in the order of their names.
func Families() []Family {
	return []Family{AL2, AL2023, Bottlerocket, Custom, Ubuntu, Windows2019, Windows2022, Windows2025}
}

// ParseFamily finds a family by name without regard to case. The empty name is the default, AL2023.
func ParseFamily(name string) (Family, error) {
	if name == "" {
		return AL2023, nil
	}
	names := make([]string, 0, 8)
	for _, f := range Families() {
		if strings.EqualFold(name, string(f)) {
			return f, nil
		}
		names = append(names, string(f))
	}
	hint := ""
	if near, ok := requirements.Nearest(name, names); ok {
		hint = fmt.Sprintf(" (did you mean %q?)", near)
	}
	return "", fmt.Errorf("ec2: no AMI family %q: want one of %s%s", name, strings.Join(names, ", "), hint)
}

// traits is what the arithmetic needs to know about a family.
type traits struct {
	windowsBuild string // the node's label; empty means Linux
	// reservesPerENI says that kubelet memory is reserved for as many pods as the interfaces could
	// hold, not for the pods allowed.
	reservesPerENI bool
	podsPerCore    bool   // the setting is honoured
	eniDensity     bool   // pods are limited by interfaces, not to 110
	softEviction   bool   // the older provider honoured soft eviction thresholds
	device         string // the device with the ephemeral storage; empty means unknown
	deviceBytes    int64  // its default size
}

func (f Family) traits() traits {
	t := traits{reservesPerENI: true, podsPerCore: true, eniDensity: true, softEviction: true, device: "/dev/xvda", deviceBytes: 20 << 30}
	switch f {
	case Bottlerocket:
		t.reservesPerENI, t.podsPerCore, t.softEviction, t.device = false, false, false, "/dev/xvdb"
	case Ubuntu:
		t.device = "/dev/sda1"
	case Windows2019, Windows2022, Windows2025:
		t.reservesPerENI, t.eniDensity, t.softEviction, t.device, t.deviceBytes = false, false, false, "/dev/sda1", 50<<30
		t.windowsBuild = map[Family]string{Windows2019: "10.0.17763", Windows2022: "10.0.20348", Windows2025: "10.0.26100"}[f]
	case Custom:
		t.device = ""
	case AL2, AL2023:
	}
	return t
}

// IsWindows reports whether nodes of the family run Windows.
func (f Family) IsWindows() bool { return f.traits().windowsBuild != "" }

// known reports whether the family is one of the constants.
func (f Family) known() bool { return slices.Contains(Families(), f) }
