package describe_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/instancetypes/ec2/describe"
)

func TestProduct(t *testing.T) {
	product := func(price string) string {
		return `{"product":{"attributes":{"instanceType":"m5.large"}},"publicationDate":"2026-01-02T03:04:05Z","terms":{"OnDemand":{"a":{"priceDimensions":{"b":{"unit":"Hrs","pricePerUnit":` + price + `}}}}}}`
	}
	for text, want := range map[string]float64{product(`{"USD":"0.096"}`): 0.096, product(`{"CNY":"0.6"}`): 0.6, product(`{"EUR":"1"}`): 0, product(`{"USD":"0"}`): 0} {
		name, hourly, date, err := describe.Product(text)
		require.NoError(t, err)
		assert.Equal(t, "m5.large", name)
		assert.InDelta(t, want, hourly, 1e-9)
		assert.Equal(t, "2026-01-02", date)
	}
	for _, text := range []string{"", "[]", "{}", product(`{"USD":"-1"}`), product(`{"USD":"NaN"}`), product(`{"USD":"Inf"}`), product(`{"USD":"a"}`)} {
		_, _, _, err := describe.Product(text)
		require.Error(t, err, text)
	}
}

func FuzzProduct(f *testing.F) {
	f.Add(`{"product":{"attributes":{"instanceType":"m5.large"}},"publicationDate":"2026-01-02","terms":{"OnDemand":{"a":{"priceDimensions":{"b":{"unit":"Hrs","pricePerUnit":{"USD":"0.096"}}}}}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		name, hourly, _, err := describe.Product(text)
		if err == nil {
			assert.NotEmpty(t, name)
			assert.GreaterOrEqual(t, hourly, 0.0)
		}
	})
}

// page is an answer with products, each with some attributes.
func page(products ...string) string {
	out := `{"FormatVersion": "aws_v1", "PriceList": [`
	for i, p := range products {
		if i > 0 {
			out += ","
		}
		out += strconv.Quote(p)
	}
	return out + `]}`
}

func product(family, attributes, price string) string {
	return `{"product":{"productFamily":"` + family + `","attributes":{` + attributes + `}},"publicationDate":"2026-11-02T03:04:05Z",` +
		`"terms":{"OnDemand":{"a":{"priceDimensions":{"b":{"unit":"Hrs","pricePerUnit":{"USD":"` + price + `"}}}}}}}`
}

// Whatever was filtered, Linux on demand in the region is what is read; odd products are named, and cost the others nothing.
func TestReadProducts(t *testing.T) {
	const linux = `"regionCode":"eu-west-1","operatingSystem":"Linux","tenancy":"Shared","preInstalledSw":"NA","capacitystatus":"Used"`
	got, odd, err := describe.ReadProducts([]byte(page(
		product("Compute Instance", `"instanceType":"m8i.large",`+linux, "0.1"),
		product("Compute Instance", `"instanceType":"m8i.large","regionCode":"eu-west-1","operatingSystem":"Windows"`, "0.2"),
		product("Compute Instance", `"instanceType":"m8i.large","regionCode":"us-east-1"`, "0.3"),
		product("Compute Instance", `"instanceType":"m8i.large","tenancy":"Dedicated"`, "0.4"),
		product("Compute Instance", `"instanceType":"m8i.large","capacitystatus":"UnusedCapacityReservation"`, "0.5"),
		product("Compute Instance", `"instanceType":"m8i.large","preInstalledSw":"SQL Std"`, "0.6"),
		product("Compute Instance", `"instanceType":"free.large"`, "0"),
	)+page(
		product("Compute Instance (bare metal)", `"instanceType":"m8i.metal-48xl","tenancy":"Dedicated"`, "7"),
		product("Data Transfer", `"vcpu":"2"`, "1"), product("Compute Instance", `"instanceType":"x"`, "-1"), "{",
	)), "eu-west-1")
	require.NoError(t, err)
	assert.Equal(t, describe.OnDemandPrices{Types: map[string]float64{"m8i.large": 0.1, "m8i.metal-48xl": 7}, Date: "2026-11-02"}, got)
	for _, text := range []string{"PriceList[1]", "PriceList[2]", "PriceList[3]"} {
		require.ErrorContains(t, odd, text)
	}
	for _, text := range []string{"", "{}", "[]", `{"PriceList":[1]}`} {
		_, _, err := describe.ReadProducts([]byte(text), "eu-west-1")
		require.Error(t, err, text)
	}
}

func TestReadOfferings(t *testing.T) {
	const one = `{"InstanceTypeOfferings":[{"InstanceType":"m8i.large","LocationType":"availability-zone","Location":"eu-west-1b"},
		{"InstanceType":"m8i.large","LocationType":"availability-zone","Location":"eu-west-1a"}]}`
	got, err := describe.ReadOfferings([]byte(one + one))
	require.NoError(t, err)
	assert.Equal(t, map[string][]string{"m8i.large": {"eu-west-1a", "eu-west-1b"}}, got)
	for _, text := range []string{"", "{}", `{"InstanceTypeOfferings":[{"InstanceType":"a","LocationType":"region","Location":"eu-west-1"}]}`} {
		_, err := describe.ReadOfferings([]byte(text))
		require.Error(t, err, text)
	}
}

func ExampleOnDemandPrices() {
	prices, _, err := describe.ReadProducts([]byte(page(product("Compute Instance", `"instanceType":"m8i.large"`, "0.1"))), "eu-west-1")
	fmt.Println(prices.Types, prices.Date, err)
	// Output: map[m8i.large:0.1] 2026-11-02 <nil>
}

func ExampleReadOfferings() {
	zones, err := describe.ReadOfferings([]byte(`{"InstanceTypeOfferings":[{"InstanceType":"m8i.large","LocationType":"availability-zone","Location":"eu-west-1a"}]}`))
	fmt.Println(zones, err)
	// Output: map[m8i.large:[eu-west-1a]] <nil>
}

func ExampleProduct() {
	fmt.Println(describe.Product(`{"product":{"attributes":{"instanceType":"m5.large"}},"publicationDate":"2026-01-02T00:00:00Z",
		"terms":{"OnDemand":{"t":{"priceDimensions":{"d":{"unit":"Hrs","pricePerUnit":{"USD":"0.0960000000"}}}}}}}`))
	// Output: m5.large 0.096 2026-01-02 <nil>
}
