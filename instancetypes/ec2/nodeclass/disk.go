package nodeclass

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
)

// wireDisk is an element of blockDeviceMappings.
type wireDisk struct {
	DeviceName *string  `json:"deviceName"`
	EBS        *wireEBS `json:"ebs"`
	RootVolume *bool    `json:"rootVolume"`
}

type wireEBS struct {
	DeleteOnTermination      *bool     `json:"deleteOnTermination"`
	Encrypted                *bool     `json:"encrypted"`
	IOPS                     *int64    `json:"iops"`
	KMSKeyID                 *string   `json:"kmsKeyID"`
	SnapshotID               *string   `json:"snapshotID"`
	Throughput               *int64    `json:"throughput"`
	VolumeInitializationRate *int64    `json:"volumeInitializationRate"`
	VolumeSize               *quantity `json:"volumeSize"`
	VolumeType               *string   `json:"volumeType"`
}

// The limits of EBS volumes: 1 GiB to 64 TB.
const (
	minVolume = 1e9
	maxVolume = 64e12
)

// disks reads the mappings. modern says that the version has rootVolume.
func (r *report) disks(path string, wire []wireDisk, modern bool) []BlockDevice {
	if len(wire) > 50 {
		r.bad(path, "%d devices: want at most 50", len(wire))
	}
	var out []BlockDevice
	roots := 0
	for i, w := range wire {
		at := fmt.Sprintf("%s[%d]", path, i)
		b := BlockDevice{Device: value(w.DeviceName), Root: value(w.RootVolume)}
		if w.RootVolume != nil && !modern {
			r.bad(at+".rootVolume", "no such field in this version")
		}
		if b.Root {
			roots++
		}
		if w.DeviceName == nil && !modern {
			r.bad(at+".deviceName", "missing: want a name such as /dev/xvda")
		}
		if w.EBS == nil {
			if !modern {
				r.bad(at+".ebs", "missing: want the volume")
			}
			out = append(out, b)
			continue
		}
		e := w.EBS
		at += ".ebs"
		b.Type, b.IOPS, b.Throughput, b.InitializationRate = value(e.VolumeType), value(e.IOPS), value(e.Throughput), value(e.VolumeInitializationRate)
		b.KMSKeyID, b.Snapshot, b.Encrypted, b.DeleteOnTermination = value(e.KMSKeyID), value(e.SnapshotID), e.Encrypted, e.DeleteOnTermination
		if e.VolumeType != nil {
			r.oneOf(at+".volumeType", b.Type, "gp2", "gp3", "io1", "io2", "sc1", "st1", "standard")
		}
		if e.VolumeSize == nil && e.SnapshotID == nil {
			r.bad(at, "want volumeSize or snapshotID")
		}
		if e.VolumeSize != nil {
			b.Bytes = resources.Request(corev1.ResourceEphemeralStorage, e.VolumeSize.Quantity)
			if b.Bytes < minVolume || b.Bytes > maxVolume {
				r.bad(at+".volumeSize", "%s: want 1Gi to 64T", e.VolumeSize.String())
			}
		}
		if rate := e.VolumeInitializationRate; rate != nil {
			if *rate < 100 || *rate > 300 {
				r.bad(at+".volumeInitializationRate", "%d: want 100 to 300", *rate)
			}
			if b.Snapshot == "" {
				r.bad(at+".volumeInitializationRate", "needs snapshotID")
			}
		}
		if b.IOPS < 0 || b.Throughput < 0 {
			r.bad(at, "iops and throughput: want no negative number")
		}
		out = append(out, b)
	}
	if roots > 1 {
		r.bad(path, "%d devices with rootVolume: want at most one", roots)
	}
	return out
}

// oneOf reports a word that is not one of the allowed ones.
func (r *report) oneOf(path, word string, allowed ...string) {
	if slices.Contains(allowed, word) {
		return
	}
	hint := ""
	if near, ok := requirements.Nearest(word, allowed); ok {
		hint = fmt.Sprintf(" (did you mean %q?)", near)
	}
	r.bad(path, "%q: want one of %s%s", word, strings.Join(allowed, ", "), hint)
}

// value returns what a pointer points to, or the zero value.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
