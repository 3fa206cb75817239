package describe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"
)

// OnDemandPrices are the published prices of a region: US dollars (in China yuan) an hour by
// instance type.
type OnDemandPrices struct {
	Types map[string]float64
	// Date is the date of the list, YYYY-MM-DD. It is empty if no product has one.
	Date string
}

// ReadProducts reads the output of `aws pricing get-products --service-code AmazonEC2`, one page or
// several in sequence. It skips a product if its region is another one, its system is not Linux,
// its tenancy is not shared (for bare metal: dedicated), it includes preinstalled software, or it
// has no price. So any filter works that includes the right products. odd joins a line for each
// invalid product. The error says that the data is not such an answer.
func ReadProducts(data []byte, region string) (out OnDemandPrices, odd, err error) {
	out.Types = map[string]float64{}
	dec := json.NewDecoder(bytes.NewReader(data))
	var errs []error
	pages := 0
	for ; dec.More(); pages++ {
		var page struct{ PriceList *[]string }
		if err := dec.Decode(&page); err != nil {
			return OnDemandPrices{}, nil, fmt.Errorf("describe: %w", syntax(err))
		}
		if page.PriceList == nil {
			return OnDemandPrices{}, nil, errors.New(`describe: no list "PriceList": want the JSON that "aws pricing get-products" prints`)
		}
		for i, text := range *page.PriceList {
			if !ordinary(text, region) {
				continue
			}
			name, price, date, err := Product(text)
			if err != nil {
				errs = append(errs, fmt.Errorf("PriceList[%d]: %w", i, err))
				continue
			}
			if price > 0 {
				out.Types[name], out.Date = price, max(out.Date, date)
			}
		}
	}
	if pages == 0 {
		return OnDemandPrices{}, nil, errors.New(`describe: empty input: want the JSON that "aws pricing get-products" prints`)
	}
	return out, errors.Join(errs...), nil
}

// ordinary reports whether a product is Linux on demand in the region. Missing attributes count as
// correct.
func ordinary(text, region string) bool {
	var p struct {
		Product struct {
			ProductFamily string
			Attributes    map[string]any
		}
	}
	if json.Unmarshal([]byte(text), &p) != nil {
		return true // Product reports what is wrong
	}
	tenancy := "Shared"
	if p.Product.ProductFamily == "Compute Instance (bare metal)" {
		tenancy = "Dedicated"
	}
	for key, want := range map[string]string{
		"regionCode": region, "operatingSystem": "Linux", "preInstalledSw": "NA", "capacitystatus": "Used", "marketoption": "OnDemand", "tenancy": tenancy,
	} {
		if have, ok := p.Product.Attributes[key]; ok && have != want {
			return false
		}
	}
	return true
}

// Product reads one product of the price list: the instance type, US dollars (in China yuan) an
// hour, and the date of the list. If the list has no price for the product, hourly is 0.
func Product(text string) (instanceType string, hourly float64, date string, err error) {
	var p struct {
		Product         struct{ Attributes struct{ InstanceType string } }
		PublicationDate string
		Terms           struct {
			OnDemand map[string]struct {
				PriceDimensions map[string]struct {
					Unit         string
					PricePerUnit map[string]string
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return "", 0, "", errors.New("describe: a product of the price list is not a JSON object of the known form")
	}
	if p.Product.Attributes.InstanceType == "" {
		return "", 0, "", errors.New("describe: a product of the price list names no instance type")
	}
	for _, term := range slices.Sorted(maps.Keys(p.Terms.OnDemand)) {
		dimensions := p.Terms.OnDemand[term].PriceDimensions
		for _, d := range slices.Sorted(maps.Keys(dimensions)) {
			for _, currency := range []string{"USD", "CNY"} {
				amount, ok := dimensions[d].PricePerUnit[currency]
				if !ok {
					continue
				}
				v, err := strconv.ParseFloat(amount, 64)
				if err != nil || !(v >= 0) || math.IsInf(v, 0) {
					return "", 0, "", fmt.Errorf("describe: the price of %q is %q", p.Product.Attributes.InstanceType, amount)
				}
				hourly = max(hourly, v)
			}
		}
	}
	if len(p.PublicationDate) >= len(time.DateOnly) {
		date = p.PublicationDate[:len(time.DateOnly)]
	}
	return p.Product.Attributes.InstanceType, hourly, date, nil
}
