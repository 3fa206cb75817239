package ec2

import (
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/label"
	"github.com/joinery-sdk/joinery/requirements"
)

// ProvisionerDefaults adds the defaults of the AWS provider to what a Provisioner of
// karpenter.sh/v1alpha5 asks for. asked is its requirements and labels, under current keys. The
// defaults are Linux, amd64 and on-demand. If the Provisioner asks for no instance type, family,
// category or generation, they also include the categories c, m and r with a generation above 2.
// Defaults never affect a key that is mentioned, so the result is impossible only if asked is.
func ProvisionerDefaults(asked requirements.Set) requirements.Set {
	var b requirements.Builder
	b.AddSet(asked)
	for _, r := range []requirements.Requirement{
		requirements.In(corev1.LabelOSStable, "linux"), requirements.In(corev1.LabelArchStable, "amd64"),
		requirements.In(instancetypes.LabelCapacityType, instancetypes.CapacityTypeOnDemand),
	} {
		if !asked.Has(r.Key()) {
			b.Add(r)
		}
	}
	if !asked.Has(corev1.LabelInstanceTypeStable) && !asked.Has(label.Family) && !asked.Has(label.Category) && !asked.Has(label.Generation) {
		b.Add(requirements.In(label.Category, "c", "m", "r")).Add(requirements.Gt(label.Generation, 2))
	}
	s, _ := b.Set() // impossible if and only if asked is
	return s
}

// WithGlobal returns the settings with those keys of the ConfigMap karpenter-global-settings that
// affect sizes: aws.enablePodENI, aws.enableENILimitedPodDensity, aws.vmMemoryOverheadPercent and
// aws.reservedENIs. A missing key changes nothing, and other keys are ignored. The error joins one
// line for each invalid value.
func (s Settings) WithGlobal(data map[string]string) (Settings, error) {
	var errs []error
	off := func(key string, into *bool) {
		text, ok := data[key]
		if !ok {
			return
		}
		on, err := strconv.ParseBool(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("ec2: global settings: %s: %q: want true or false", key, text))
			return
		}
		*into = !on
	}
	off("aws.enablePodENI", &s.NoPodENI)
	off("aws.enableENILimitedPodDensity", &s.NoENIDensity)
	if text, ok := data["aws.vmMemoryOverheadPercent"]; ok {
		// Despite its name the setting is a fraction: 0.075.
		share, err := strconv.ParseFloat(text, 64)
		switch {
		case err != nil || !(share >= 0 && share < 1):
			errs = append(errs, fmt.Errorf("ec2: global settings: aws.vmMemoryOverheadPercent: %q: want a share such as 0.075", text))
		case share != 0.075:
			s.VMMemory = FlatVMMemory(share)
		}
	}
	if text, ok := data["aws.reservedENIs"]; ok {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 0 {
			errs = append(errs, fmt.Errorf("ec2: global settings: aws.reservedENIs: %q: want a count", text))
		} else {
			s.ReservedENIs = n
		}
	}
	return s, errors.Join(errs...)
}
