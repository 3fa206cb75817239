package awstest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest/internal/model"
)

// ServeHTTP answers one request of any service.
func (c *Cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "no body", http.StatusBadRequest)
		return
	}
	req := request{protocol: queryProtocol, service: "EC2", signed: r.Header.Get("X-Amz-Date")}
	switch target := r.Header.Get("X-Amz-Target"); {
	case target != "":
		req.protocol = jsonProtocol
		prefix, action, _ := strings.Cut(target, ".")
		req.action = action
		req.service = map[string]string{"AmazonSSM": "SSM", "AmazonSQS": "SQS", "AWSPriceListService": "Pricing"}[prefix]
		req.body = body
	case r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/clusters/"):
		req.protocol, req.service, req.action = jsonProtocol, "EKS", "DescribeCluster"
		req.name = strings.TrimPrefix(r.URL.Path, "/clusters/")
	case r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/managedresources/"):
		req.protocol, req.service, req.action = jsonProtocol, "ARC Zonal Shift", "GetManagedResource"
		req.name = strings.TrimPrefix(r.URL.Path, "/managedresources/")
	default:
		form, err := url.ParseQuery(string(body))
		if err != nil {
			http.Error(w, "no form", http.StatusBadRequest)
			return
		}
		req.params = parseParams(form)
		req.action = form.Get("Action")
		if form.Get("Version") == "2010-05-08" {
			req.service = "IAM"
		}
	}
	answer, failure, fault := c.handle(req)
	if fault.Lost || fault.Dropped {
		panic(http.ErrAbortHandler) // closes the connection without an answer, as a network that breaks
	}
	w.Header().Set("Date", c.skewed().UTC().Format(http.TimeFormat))
	if fault.RetryAfter != "" {
		w.Header().Set("Retry-After", fault.RetryAfter)
	}
	req.write(w, answer, failure)
}

type protocol int

const (
	queryProtocol protocol = iota
	jsonProtocol
)

type request struct {
	protocol        protocol
	service, action string
	signed          string
	fault           Fault
	params          *params
	body            []byte
	name            string
}

// decode reads a JSON body.
func (r request) decode(into any) *apiError {
	if err := json.Unmarshal(r.body, into); err != nil {
		return &apiError{"SerializationException", err.Error()}
	}
	return nil
}

// handle carries out a request, under the lock. The answer is []el or a value for JSON.
func (c *Cloud) handle(r request) (any, *apiError, Fault) {
	defer c.lock()()
	c.sweep()
	name := r.service + "." + r.action
	c.calls[name]++
	var fault Fault
	if c.fault != nil {
		fault = c.fault(Call{Service: r.service, Action: r.action, N: c.calls[name]})
	}
	if fault.Slow > 0 {
		c.mu.Unlock()
		time.Sleep(fault.Slow)
		c.mu.Lock()
	}
	if fault.Dropped {
		return nil, nil, fault
	}
	if at, err := time.Parse("20060102T150405Z", r.signed); c.skew.Load() != 0 && err == nil && c.skewed().Sub(at).Abs() > 5*time.Minute {
		code := map[string]string{"EC2": "RequestExpired", "IAM": "SignatureDoesNotMatch"}[r.service]
		return nil, &apiError{cmp.Or(code, "InvalidSignatureException"), "Signature expired: " + r.signed + " is not the time of the service."}, fault
	}
	if fault.Code != "" {
		if fault.Code == "RequestLimitExceeded" {
			c.throttled++
		}
		return nil, &apiError{fault.Code, fault.Message}, fault
	}
	if r.params != nil {
		ids := len(r.params.list("InstanceId"))
		filtered := r.params.has("Filter") || r.params.has("MaxResults") || r.params.has("NextToken")
		if c.buckets.Take(c.now(), r.service, r.action, filtered, ids, 0) > 0 {
			c.throttled++
			return nil, &apiError{"RequestLimitExceeded", "Request limit exceeded."}, fault
		}
	}
	if failure := r.check(); failure != nil {
		return nil, failure, fault
	}
	if r.params != nil && r.params.str("DryRun") == "true" {
		return nil, c.dryRun(r), fault
	}
	do, ok := c.actions()[name]
	if !ok {
		return nil, &apiError{"InvalidAction", fmt.Sprintf("The action %s is not valid for this web service.", name)}, fault
	}
	r.fault = fault
	answer, failure := do(r)
	return answer, failure, fault
}

// check rejects what does not have the form that the service describes, or what its documentation
// excludes.
func (r request) check() *apiError {
	var n model.Node
	switch {
	case r.params != nil:
		n = r.params.node()
		delete(n.Members, "Action")
		delete(n.Members, "Version")
	case len(r.body) == 0:
		return nil // the request is in the address
	default:
		var err error
		if n, err = model.JSON(r.body); err != nil {
			return &apiError{"SerializationException", err.Error()}
		}
	}
	f := model.Check(r.service, r.action, n)
	switch {
	case f.Code == "":
	case r.service == "EC2" || f.Code == "InvalidAction":
		return &apiError{f.Code, f.Message}
	case r.service == "IAM":
		return &apiError{"ValidationError", f.Message}
	default:
		return &apiError{"ValidationException", f.Message}
	}
	// These calls page through filtered results, and do not page through named ones ("MaxResults"
	// of the API reference).
	for _, pair := range [][2]string{{"EC2.DescribeInstances", "InstanceId"}, {"EC2.DescribeCapacityReservations", "CapacityReservationId"}, {"EC2.DescribeInstanceStatus", "InstanceId"}} {
		if r.service+"."+r.action == pair[0] && r.params.has(pair[1]) && r.params.has("MaxResults") {
			return &apiError{"InvalidParameterCombination", "The parameter " + pair[1] + " cannot be used with the parameter MaxResults"}
		}
	}
	return nil
}

// dryRun returns the answer to a dry run of a call that the caller may make.
func (c *Cloud) dryRun(r request) *apiError {
	for _, config := range r.params.list("LaunchTemplateConfigs") {
		if name := config.str("LaunchTemplateSpecification", "LaunchTemplateName"); c.templates[name] == nil {
			return &apiError{"InvalidLaunchTemplateName.NotFoundException", fmt.Sprintf("The specified launch template, with template name %s, does not exist.", name)}
		}
	}
	return &apiError{"DryRunOperation", "Request would have succeeded, but DryRun flag is set."}
}

func (c *Cloud) actions() map[string]func(request) (any, *apiError) {
	return map[string]func(request) (any, *apiError){
		"EC2.DescribeSubnets":                c.describeSubnets,
		"EC2.DescribeSecurityGroups":         c.describeSecurityGroups,
		"EC2.DescribeImages":                 c.describeImages,
		"EC2.DescribeInstanceTypes":          c.describeInstanceTypes,
		"EC2.DescribeInstanceTypeOfferings":  c.describeOfferings,
		"EC2.DescribeSpotPriceHistory":       c.describeSpotPrices,
		"EC2.DescribeCapacityReservations":   c.describeReservations,
		"EC2.DescribePlacementGroups":        c.describePlacementGroups,
		"EC2.CreateLaunchTemplate":           c.createTemplate,
		"EC2.DescribeLaunchTemplates":        c.describeTemplates,
		"EC2.DescribeLaunchTemplateVersions": c.describeTemplateVersions,
		"EC2.DeleteLaunchTemplate":           c.deleteTemplate,
		"EC2.CreateFleet":                    c.createFleet,
		"EC2.DescribeInstances":              c.describeInstances,
		"EC2.DescribeInstanceStatus":         c.describeStatus,
		"EC2.TerminateInstances":             c.terminateInstances,
		"EC2.ModifyInstanceAttribute":        c.modifyInstance,
		"EC2.CreateTags":                     c.createTags,
		"SSM.GetParameters":                  c.getParameters,
		"ARC Zonal Shift.GetManagedResource": c.managedResource,
		"EKS.DescribeCluster":                c.describeCluster,
		"Pricing.GetProducts":                c.getProducts,
		"SQS.GetQueueUrl":                    c.getQueueURL,
		"SQS.SendMessage":                    c.sendMessage,
		"SQS.ReceiveMessage":                 c.receiveMessage,
		"SQS.DeleteMessageBatch":             c.deleteMessages,
		"IAM.GetInstanceProfile":             c.getProfile,
		"IAM.CreateInstanceProfile":          c.createProfile,
		"IAM.AddRoleToInstanceProfile":       c.addRole,
		"IAM.RemoveRoleFromInstanceProfile":  c.removeRole,
		"IAM.DeleteInstanceProfile":          c.deleteProfile,
		"IAM.ListInstanceProfiles":           c.listProfiles,
	}
}

func (r request) write(w http.ResponseWriter, answer any, failure *apiError) {
	if r.protocol == jsonProtocol {
		kind, status := "application/x-amz-json-1.1", http.StatusOK
		if r.service == "SQS" {
			kind = "application/x-amz-json-1.0"
		}
		if r.service == "EKS" || r.service == "ARC Zonal Shift" {
			kind = "application/json"
		}
		if failure != nil {
			status = statusOf(failure.code)
			w.Header().Set("X-Amzn-Errortype", failure.code)
			answer = map[string]string{"__type": failure.code, "message": failure.message}
		}
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(answer) // a caller that has gone needs no answer
		return
	}
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>`)
	status := http.StatusOK
	const id = "00000000-0000-4000-8000-000000000000"
	elements, _ := answer.([]el)
	switch {
	case failure != nil && r.service == "IAM":
		status = statusOf(failure.code)
		e("ErrorResponse", e("Error", e("Type", "Sender"), e("Code", failure.code), e("Message", failure.message)), e("RequestId", id)).write(&b)
	case failure != nil:
		status = statusOf(failure.code)
		e("Response", e("Errors", e("Error", e("Code", failure.code), e("Message", failure.message))), e("RequestID", id)).write(&b)
	case r.service == "IAM":
		e(r.action+"Response", e(r.action+"Result", elements), e("ResponseMetadata", e("RequestId", id))).write(&b)
	default:
		e(r.action+"Response", append([]el{e("requestId", id)}, elements...)).write(&b)
	}
	w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, b.String())
}

// cited returns the row of the answer book for a code of an answer. It panics if there is none, so
// that no test relies on an unknown answer.
func cited(level, code string) api.Answer {
	a := api.Find(level, strings.TrimPrefix(code, "com.amazonaws.sqs#"), "", http.StatusBadRequest)
	if a.Source == "" && !strings.HasPrefix(code, Unlisted) {
		panic(fmt.Sprintf("awstest: answers.yaml of package api has no row for %q at level %q: add it with its source, or begin the code with %q", code, level, Unlisted))
	}
	return a
}

// statusOf returns the HTTP status of a code in the answer book.
func statusOf(code string) int { return cmp.Or(cited(api.Call, code).Status, http.StatusBadRequest) }

// Unlisted is the prefix of codes that stand for codes missing from the answer book. All other
// codes must be in it, or the cloud panics.
const Unlisted = "Unlisted"

// page cuts a page out of a list, from its end, because AWS promises no order. The token is the
// number of elements before it. After an empty page it has one more letter; AWS may send empty
// pages while there are more.
func page[T any](c *Cloud, r request, all []T, largest int) ([]T, []el) {
	token, skipped := strings.CutSuffix(r.params.str("NextToken"), "e")
	start, _ := strconv.Atoi(token) // no token is the beginning
	list, next := cut(c, slices.Backward(all), len(all), start, cmp.Or(r.params.num("MaxResults"), largest), skipped)
	if next == "" {
		return list, nil
	}
	return list, []el{e("nextToken", next)}
}

// cut returns a page of n elements, and the token of the next one.
func cut[T any](c *Cloud, all iter.Seq2[int, T], n, start, size int, skipped bool) (list []T, next string) {
	size = min(size, cmp.Or(c.config.Page, 100))
	if start > 0 && c.config.Page > 0 && !skipped {
		return nil, strconv.Itoa(start) + "e"
	}
	at := 0
	for _, t := range all {
		if at >= start && at < start+size {
			list = append(list, t)
		}
		at++
	}
	if start+size < n {
		next = strconv.Itoa(start + size)
	}
	return list, next
}
