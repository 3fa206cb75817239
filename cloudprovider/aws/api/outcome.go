package api

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/joinery-sdk/joinery/cloudprovider"
)

// DryRunOperation is EC2's code for a dry run of a call that would have been allowed.
const DryRunOperation = "DryRunOperation"

// AnswerOf returns the row for an error of a call, and AWS's words, or false if AWS did not answer.
func AnswerOf(err error) (Answer, string, bool) {
	answer, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return Answer{}, "", false
	}
	a := Find(Call, answer.ErrorCode(), answer.ErrorMessage(), statusOf(err))
	a.Code = answer.ErrorCode()
	return a, answer.ErrorMessage(), true
}

// statusOf returns the HTTP status of the answer, or 0 if there was none.
func statusOf(err error) int {
	if r, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		return r.HTTPStatusCode()
	}
	return 0
}

// deniedAction matches "... is not authorized to perform: ec2:CreateTags on resource ...".
var deniedAction = regexp.MustCompile(`to perform: ([\w-]+:\w+)`)

// cure returns what a person can do about an answer, or an empty string. permission is the IAM
// action of the call, such as "ec2:CreateFleet".
func (a Answer) cure(message, permission string) string {
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(strings.ToLower(message), p) })
	}
	switch {
	case a.Class == cloudprovider.ErrUnauthorized.Error() && a.Cure == "" && (strings.Contains(a.Code, "nauthorized") || strings.HasPrefix(a.Code, "AccessDenied")):
		by := "in the caller's IAM policy"
		switch {
		case has("service control policy"):
			by = "in the organization's service control policy"
		case has("permissions boundary"):
			by = "in the caller's permissions boundary"
		case has("explicit deny"):
			by = "by taking away the explicit deny"
		}
		if denied := deniedAction.FindStringSubmatch(message); denied != nil {
			permission = denied[1]
		}
		return "allow " + permission + " " + by
	case has("kms", "customer master key") && has("not allowed", "not authorized", "access", "disabled", "invalid", "incorrect state"):
		return KMSCure
	case has("security group") && has("same vpc", "different vpc", "belong to different networks", "same network"):
		return "security groups and subnets of the node class are in different networks"
	}
	return strings.ReplaceAll(a.Cure, "{kms}", KMSCure)
}

// Describe returns an answer's code and words in a form that may be shown, and a cure if one is
// known.
func (a Answer) Describe(message, permission string, private ...string) string {
	text := strings.TrimSuffix(a.Code+": "+Redact(message, private...), ": ")
	if cure := a.cure(message, permission); cure != "" {
		text += ": " + cure
	}
	return text
}

// KMSCure names the permissions without which instances with encrypted disks end right after launch.
const KMSCure = "the launching principal, and the Auto Scaling or Spot service-linked role if it launches, needs kms:Decrypt, kms:GenerateDataKeyWithoutPlaintext, " +
	"kms:ReEncryptFrom, kms:ReEncryptTo, kms:DescribeKey and kms:CreateGrant on the key, and the key must be enabled"

// cause is an error of the SDK with a text that may be shown.
type cause struct {
	text string
	err  error
}

func (c *cause) Error() string { return c.text }
func (c *cause) Unwrap() error { return c.err }

// outcome returns the meaning of an error of the SDK. Errors of the context, and errors that leave
// the outcome unknown, are outside the closed list.
func outcome(service, action string, err error, private []string) error {
	if err == nil {
		return nil
	}
	if known, ok := errors.AsType[*cloudprovider.Error](err); ok {
		return known
	}
	name := permission(service, action)
	for _, ended := range []error{context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, ended) {
			return fmt.Errorf("aws: %s: %w", name, ended)
		}
	}
	found, message, ok := AnswerOf(err)
	if !ok {
		text := err.Error()
		if strings.Contains(text, "get credentials") || strings.Contains(text, "failed to refresh cached credentials") || strings.Contains(text, "failed to retrieve credentials") {
			return &cloudprovider.Error{Code: cloudprovider.ErrUnauthorized, Err: &cause{name + ": no credentials were found: set AWS_PROFILE or AWS_ACCESS_KEY_ID, or run where a role is attached", err}}
		}
		return &cause{"aws: " + name + ": no answer: " + Redact(rootText(err), private...), err}
	}
	text := name + ": " + found.Describe(message, name, private...)
	if found.Err() == nil {
		return &cause{"aws: " + text, err}
	}
	return &cloudprovider.Error{Code: found.Err(), RetryAfter: retryAfter(err), Err: &cause{text, err}}
}

// rootText returns the innermost text, because the outer ones repeat the request's URL and ids.
func rootText(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}

// Outcome adds the method and its subject to an error of a call.
func Outcome(op, subject string, err error) error {
	known, ok := errors.AsType[*cloudprovider.Error](err)
	if !ok {
		if shown, ok := errors.AsType[*cause](err); ok { // without the SDK's own text around it
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

// Reason returns AWS's error code of an error, such as
// "InvalidLaunchTemplateName.NotFoundException", or an empty string.
func Reason(err error) string {
	if answer, ok := errors.AsType[smithy.APIError](err); ok {
		return answer.ErrorCode()
	}
	return ""
}

// PricingRegion returns the region whose endpoint has the prices of another region. The price API
// exists in four regions.
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
