package model_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest/internal/model"
)

func text(s string) model.Node { return model.Node{Text: s} }

func members(pairs ...any) model.Node {
	n := model.Node{Members: map[string]model.Node{}}
	for i := 0; i < len(pairs); i += 2 {
		n.Members[pairs[i].(string)] = pairs[i+1].(model.Node)
	}
	return n
}

func filter(name string, values ...string) model.Node {
	var list []model.Node
	for _, v := range values {
		list = append(list, text(v))
	}
	return members("Filter", model.Node{List: []model.Node{members("Name", text(name), "Value", model.Node{List: list})}})
}

func TestRequestsAreChecked(t *testing.T) {
	for name, test := range map[string]struct {
		service, action string
		in              model.Node
		code            string
	}{
		"documented filter":   {"EC2", "DescribeSubnets", filter("tag:team", "a"), ""},
		"filter of another":   {"EC2", "DescribeCapacityReservations", filter("capacity-reservation-id", "cr-1"), model.InvalidValue},
		"value, not a filter": {"EC2", "DescribeCapacityReservations", filter("dedicated", "x"), model.InvalidValue},
		"too many values":     {"EC2", "DescribeSubnets", filter("subnet-id", make([]string, 201)...), "FilterLimitExceeded"},
		"unknown parameter":   {"EC2", "CreateFleet", members("LaunchTemplate", text("x")), model.UnknownParameter},
		"unknown value":       {"EC2", "CreateFleet", members("Type", text("instantly")), model.InvalidValue},
		"missing":             {"EC2", "CreateFleet", members("Type", text("instant")), model.Missing},
		"page too large":      {"EC2", "DescribeInstanceTypes", members("MaxResults", text("101")), model.InvalidValue},
		"no number":           {"EC2", "DescribeInstanceTypes", members("MaxResults", text("many")), model.InvalidValue},
		"list for a text":     {"EC2", "DescribeSubnets", members("NextToken", model.Node{List: []model.Node{text("a")}}), model.InvalidValue},
		"text for a list":     {"EC2", "DescribeSubnets", members("SubnetId", text("a")), model.InvalidValue},
		"unknown action":      {"EC2", "DescribeVpcs", members(), "InvalidAction"},
		"pattern":             {"IAM", "GetInstanceProfile", members("InstanceProfileName", text("a b")), model.InvalidValue},
	} {
		assert.Equal(t, test.code, model.Check(test.service, test.action, test.in).Code, name)
	}
	n, err := model.JSON([]byte(`{"Names":["/a"],"WithDecryption":null}`))
	require.NoError(t, err)
	assert.Empty(t, model.Check("SSM", "GetParameters", n))
	_, err = model.JSON([]byte(`{`))
	assert.Error(t, err)
}
