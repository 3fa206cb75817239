package cloudprovider

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Rebooter is implemented by providers that can restart a machine. The machine keeps its id, its
// disks and its location; its pods start again.
type Rebooter interface {
	// Reboot requests a restart and does not wait. After the restart the node has a new boot id.
	// Calls with the same operation cause one reboot, so a caller that lost the answer asks again.
	// An operation is text in the alphabet of tokens and is used for one instance only. If the
	// cloud does not know operations, write the operation on the machine, as a tag, before you ask
	// for the reboot: it must be known when the provider is started anew.
	Reboot(ctx context.Context, id, operation string) error
}

// RepairAdviser is implemented by providers that know which node conditions mean that a machine
// will not recover.
type RepairAdviser interface {
	// RepairPolicies returns the policies in a fixed order. Each is valid, and each combination of
	// condition, status and reason occurs once. It does not fail and makes no calls.
	RepairPolicies() []RepairPolicy
}

// RepairPolicy says what to do about a node that has had a condition for too long. Package
// lifecycle applies it.
type RepairPolicy struct {
	Condition corev1.NodeConditionType
	Status    corev1.ConditionStatus
	// Reason is a regular expression that matches a part of the condition's reason. An empty Reason
	// stands for all reasons that no other policy of the same condition and status matches.
	Reason string
	// Toleration is how long the condition may last.
	Toleration time.Duration
	// Grace is how long the node's pods may take to leave. nil means as long as the claim allows; 0
	// means that the pods are not waited for.
	Grace *time.Duration
	// Priority says which nodes come first, from 0 to 100. The greater number comes first.
	Priority int
	// Reboot says to restart the machine. If it is false, or if the provider is no [Rebooter], the
	// machine is given back and another machine is bought.
	Reboot bool
}

// Validate checks a policy. The error joins one [*InvalidError] for each fault.
func (p RepairPolicy) Validate() error {
	var errs []error
	fault := func(field, format string, args ...any) {
		errs = append(errs, &InvalidError{Path: field, Detail: fmt.Sprintf(format, args...)})
	}
	if p.Condition == "" {
		fault("condition", "required")
	}
	if p.Status != corev1.ConditionTrue && p.Status != corev1.ConditionFalse && p.Status != corev1.ConditionUnknown {
		fault("status", "%q is not True, False or Unknown", p.Status)
	}
	if _, err := regexp.Compile(p.Reason); err != nil {
		fault("reason", "%v", err)
	}
	if p.Toleration < 0 {
		fault("toleration", "%s is negative", p.Toleration)
	}
	if p.Grace != nil && *p.Grace < 0 {
		fault("grace", "%s is negative", *p.Grace)
	}
	if p.Priority < 0 || p.Priority > 100 {
		fault("priority", "%d is not from 0 to 100", p.Priority)
	}
	return errors.Join(errs...)
}
