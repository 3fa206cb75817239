package cloudprovider

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Rebooter is implemented by providers that can start a machine anew. It keeps its id, its disks and its place; its pods start again.
type Rebooter interface {
	// Reboot asks for it and does not wait; the node shows it by another boot id. Calls with the same operation are one reboot: a caller whose answer
	// was lost asks again. An operation is text of the alphabet of tokens, and used for one instance.
	Reboot(ctx context.Context, id, operation string) error
}

// RepairAdviser is implemented by providers that know which node conditions mean that a machine will not recover.
type RepairAdviser interface {
	// RepairPolicies lists the conditions, in a fixed order; each is valid, and each condition, status and reason is there once. It does not fail
	// and calls nothing.
	RepairPolicies() []RepairPolicy
}

// RepairPolicy says what is to be done about a node that has had a condition for too long. package lifecycle decides by it.
type RepairPolicy struct {
	Condition corev1.NodeConditionType
	Status    corev1.ConditionStatus
	// Reason is a regular expression for a part of the condition's reason. Empty is for the reasons that no other policy of the condition and status is for.
	Reason string
	// Toleration is how long the condition may last.
	Toleration time.Duration
	// Grace is how long the node's pods may take to leave; nil = as long as its claim allows, 0 = they do not leave.
	Grace *time.Duration
	// Priority says which nodes come first: the greater, from 0 to 100.
	Priority int
	// Reboot says that the machine is started anew; otherwise it is given back, and another one bought. Who cannot reboot replaces.
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
