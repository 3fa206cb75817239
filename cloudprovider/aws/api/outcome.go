package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/joinery-sdk/joinery/cloudprovider"
)

// DryRunOperation is EC2's code for a call that was a dry run, and would have been allowed.
const DryRunOperation = "DryRunOperation"

// CodeOf finds what one of AWS's error codes means, or nil for the ones that leave the outcome unknown. Codes of EC2 Fleet's
// per-instance errors are among them.
func CodeOf(code string) error {
	code = strings.TrimPrefix(strings.TrimPrefix(code, "Client."), "Server.")
	switch code {
	case "RequestLimitExceeded", "Throttling", "ThrottlingException", "ThrottledException", "TooManyRequestsException", "RequestThrottled",
		"RequestThrottledException", "EC2ThrottledException", "PriorRequestNotComplete", "SlowDown":
		return cloudprovider.ErrThrottled
	case "UnauthorizedOperation", "AccessDenied", "AccessDeniedException", "AuthFailure", "InvalidClientTokenId", "UnrecognizedClientException",
		"ExpiredToken", "ExpiredTokenException", "SignatureDoesNotMatch", "InvalidSignatureException", "InvalidAccessKeyId",
		"MissingAuthenticationToken", "OptInRequired", "Blocked", "PendingVerification", "AccountProblem", "UnauthorizedException":
		return cloudprovider.ErrUnauthorized
	case "InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed":
		return cloudprovider.ErrNotFound
	case "VcpuLimitExceeded", "MaxSpotInstanceCountExceeded", "InstanceLimitExceeded", "MaxFleetCountExceeded", "FleetLimitExceeded",
		"ResourceCountExceeded", "ResourceLimitExceeded", "LaunchTemplateLimitExceeded", "LimitExceeded", "LimitExceededException", "VolumeLimitExceeded",
		"MaxIOPSLimitExceeded", "SpotInstanceCountLimitExceeded":
		return cloudprovider.ErrQuota
	case "InsufficientInstanceCapacity", "UnfulfillableCapacity", "Unsupported", "InsufficientFreeAddressesInSubnet", "ReservationCapacityExceeded",
		"InsufficientCapacity", "InsufficientHostCapacity", "InsufficientReservedInstanceCapacity", "InsufficientVolumeCapacity", "SpotMaxPriceTooLow",
		"InsufficientAddressCapacity", "NoAvailableSpotCapacity":
		return cloudprovider.ErrInsufficientCapacity
	case "InvalidLaunchTemplateName.NotFoundException", "InvalidLaunchTemplateId.NotFound", "InvalidLaunchTemplateId.VersionNotFound", "InvalidSubnetID.NotFound", "InvalidSubnet",
		"InvalidGroup.NotFound", "InvalidSecurityGroupID.NotFound", "InvalidAMIID.NotFound", "InvalidAMIID.Unavailable", "ParameterNotFound",
		"NoSuchEntity", "NoSuchEntityException", "ResourceNotFoundException", "AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist",
		"InvalidPlacementGroup.Unknown", "InvalidCapacityReservationId.NotFound", "InvalidSnapshot.NotFound", "ConcurrentModification", "EntityTemporarilyUnmodifiable",
		"IncorrectInstanceState", "IncorrectState":
		return cloudprovider.ErrNotReady
	case "InternalError", "InternalFailure", "InternalServerError", "ServiceUnavailable", "Unavailable", "ServiceUnavailableException", "RequestExpired",
		"RequestTimeout", "RequestTimeoutException", "":
		return nil
	case DryRunOperation: // the answer to what was not to be done
		return cloudprovider.ErrUnsupported
	case "UnsupportedOperation", "UnknownOperationException", "InvalidAction", "NotImplemented", "UnknownOperation":
		return cloudprovider.ErrUnsupported
	}
	switch {
	case strings.HasPrefix(code, "AuthFailure."):
		return cloudprovider.ErrUnauthorized
	case strings.HasPrefix(code, "Invalid"), strings.HasPrefix(code, "Validation"), strings.HasPrefix(code, "Malformed"), strings.HasPrefix(code, "Missing"),
		strings.HasPrefix(code, "Duplicate"), strings.HasPrefix(code, "Idempotent"), strings.HasPrefix(code, "Unknown"), strings.HasSuffix(code, "Malformed"),
		code == "UserDataSizeLimitExceeded", code == "TagPolicyViolation", code == "TagLimitExceeded":
		return cloudprovider.ErrInvalidSpec
	}
	return nil
}

// Cure says what a person can do about an error code, as far as code and message tell; empty if nothing is known. Permission
// is the IAM action that was called, as "ec2:CreateFleet".
func Cure(code, message, permission string) string {
	has := func(parts ...string) bool {
		lower := strings.ToLower(message)
		for _, p := range parts {
			if strings.Contains(lower, p) {
				return true
			}
		}
		return false
	}
	switch {
	case code == "AuthFailure.ServiceLinkedRoleCreationNotPermitted":
		return `the account has no service-linked role for Spot and the caller may not create it: run "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com" once`
	case code == "UnauthorizedOperation" || code == "AccessDenied" || code == "AccessDeniedException" || code == "UnauthorizedException":
		by := "in the caller's IAM policy"
		switch {
		case has("service control policy"):
			by = "in the organization's service control policy"
		case has("permissions boundary"):
			by = "in the caller's permissions boundary"
		case has("explicit deny"):
			by = "by taking away the explicit deny"
		}
		return "allow " + cmp.Or(deniedAction(message), permission) + " " + by
	case code == "ExpiredToken" || code == "ExpiredTokenException" || code == "RequestExpired":
		return "the credentials have expired: renew them"
	case code == "InvalidClientTokenId" || code == "UnrecognizedClientException" || code == "AuthFailure" || code == "SignatureDoesNotMatch":
		return "the credentials are not valid for this account and region"
	case code == "PendingVerification":
		return "AWS has not verified the account for this region yet: this takes up to 4 hours"
	case code == "OptInRequired":
		return "subscribe to the image in the marketplace, or opt in to the region"
	case has("kms", "customer master key") && has("not allowed", "not authorized", "access", "disabled", "invalid"):
		return KMSCure
	case code == "InsufficientFreeAddressesInSubnet":
		return "the subnet has no free addresses: add a larger subnet in that zone to the node class, or turn on prefix delegation"
	case has("user data is limited", "user data size"):
		return "move scripts into the image, or have a short script fetch them"
	case has("iam instance profile") || has("instance profile name"):
		return "the instance profile does not exist, or was made a moment ago and is not known everywhere yet"
	case code == "MaxSpotInstanceCountExceeded" || code == "SpotInstanceCountLimitExceeded":
		return "raise the account's Spot quota, or allow on-demand"
	case code == "VcpuLimitExceeded" || code == "InstanceLimitExceeded":
		return "raise the account's quota of vCPUs for these families"
	case code == "InvalidAMIID.NotFound":
		return "the image is gone, or not shared with this account: select another one"
	case strings.HasPrefix(code, "InvalidSubnetID"), strings.HasPrefix(code, "InvalidGroup"):
		return "the node class selects something that is gone: its selector is read again"
	case has("security group") && has("same vpc", "different vpc", "belong to different networks", "same network"):
		return "security groups and subnets of the node class are in different networks"
	}
	return ""
}

// KMSCure is the missing grant that makes instances with encrypted disks die at once.
const KMSCure = "the launching principal, and the Auto Scaling or Spot service-linked role if it launches, needs kms:Decrypt, kms:GenerateDataKeyWithoutPlaintext, " +
	"kms:ReEncryptFrom, kms:ReEncryptTo, kms:DescribeKey and kms:CreateGrant on the key, and the key must be enabled"

// deniedAction finds the action in "... is not authorized to perform: ec2:CreateTags on resource ...".
func deniedAction(message string) string {
	_, after, ok := strings.Cut(message, "to perform: ")
	if !ok {
		return ""
	}
	action, _, _ := strings.Cut(after, " ")
	action = strings.Trim(action, ".,;")
	if !strings.Contains(action, ":") {
		return ""
	}
	return action
}

// cause is an error of the SDK with a text that may be shown.
type cause struct {
	text string
	err  error
}

func (c *cause) Error() string { return c.text }
func (c *cause) Unwrap() error { return c.err }

// outcome is what an error of the SDK means. Errors of the context, and those that leave the outcome unknown, are outside
// of the closed list.
func outcome(service, action string, err error, private []string) error {
	if err == nil {
		return nil
	}
	if known, ok := errors.AsType[*cloudprovider.Error](err); ok {
		return known
	}
	name := permission(service, action)
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		ctxErr := context.Canceled
		if errors.Is(err, context.DeadlineExceeded) {
			ctxErr = context.DeadlineExceeded
		}
		return fmt.Errorf("aws: %s: %w", name, ctxErr)
	}
	answer, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		text := err.Error()
		if strings.Contains(text, "get credentials") || strings.Contains(text, "failed to refresh cached credentials") || strings.Contains(text, "failed to retrieve credentials") {
			return &cloudprovider.Error{Code: cloudprovider.ErrUnauthorized, Err: &cause{name + ": no credentials were found: set AWS_PROFILE or AWS_ACCESS_KEY_ID, or run where a role is attached", err}}
		}
		return &cause{"aws: " + name + ": no answer: " + Redact(rootText(err), private...), err}
	}
	text := fmt.Sprintf("%s: %s: %s", name, answer.ErrorCode(), Redact(answer.ErrorMessage(), private...))
	if cure := Cure(answer.ErrorCode(), answer.ErrorMessage(), name); cure != "" {
		text += ": " + cure
	}
	code := CodeOf(answer.ErrorCode())
	if code == nil {
		return &cause{"aws: " + text, err}
	}
	return &cloudprovider.Error{Code: code, Err: &cause{text, err}}
}

// rootText is the innermost text: the outer ones repeat the request's URL and ids.
func rootText(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}

// Outcome completes an error of a call with the method and what it was about.
func Outcome(op, subject string, err error) error {
	known, ok := errors.AsType[*cloudprovider.Error](err)
	if !ok {
		if shown, ok := errors.AsType[*cause](err); ok { // without the SDK's own words around it
			return shown
		}
		return err
	}
	e := *known
	if e.Op == "" {
		e.Op = op
	}
	if e.Subject == "" {
		e.Subject = subject
	}
	return &e
}

// Reason is AWS's error code behind an error, such as "InvalidLaunchTemplateName.NotFoundException"; empty if there is none.
func Reason(err error) string {
	if answer, ok := errors.AsType[smithy.APIError](err); ok {
		return answer.ErrorCode()
	}
	return ""
}

// PricingRegion is the region whose endpoint tells the prices of another one: the API of prices is served from four.
func PricingRegion(region string) string {
	switch {
	case strings.HasPrefix(region, "ap-"):
		return "ap-south-1"
	case strings.HasPrefix(region, "cn-"):
		return "cn-northwest-1"
	case strings.HasPrefix(region, "eu-"):
		return "eu-central-1"
	default:
		return "us-east-1"
	}
}
