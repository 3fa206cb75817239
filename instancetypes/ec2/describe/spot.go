package describe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// SpotPrices are the newest spot prices of an account: instance type to zone to US dollars per
// hour.
type SpotPrices struct {
	Zones map[string]map[string]float64
	// Date is the date of the newest price, YYYY-MM-DD. It is empty if no price has one.
	Date string
}

// ReadSpotPrices reads the output of `aws ec2 describe-spot-price-history`, one page or several in
// sequence. Of several prices of a type in a zone the newest counts, or the first of equally new
// ones. Products other than Linux/UNIX are left out. The error joins a line for each invalid price.
func ReadSpotPrices(data []byte) (SpotPrices, error) {
	out, odd, err := ReadUsableSpotPrices(data)
	if err = errors.Join(err, odd); err != nil {
		return SpotPrices{}, err
	}
	return out, nil
}

// ReadUsableSpotPrices is [ReadSpotPrices] for answers that nobody can correct. Invalid prices are
// left out, and odd joins a line for each. The error says that the data is not such an answer.
func ReadUsableSpotPrices(data []byte) (out SpotPrices, odd, err error) {
	out = SpotPrices{Zones: map[string]map[string]float64{}}
	newest := map[[2]string]string{}
	dec := json.NewDecoder(bytes.NewReader(data))
	pages := 0
	var errs []error
	for ; dec.More(); pages++ {
		var page struct {
			SpotPriceHistory *[]struct{ AvailabilityZone, InstanceType, ProductDescription, SpotPrice, Timestamp string }
		}
		if err := dec.Decode(&page); err != nil {
			return SpotPrices{}, nil, fmt.Errorf("describe: %w", syntax(err))
		}
		if page.SpotPriceHistory == nil {
			return SpotPrices{}, nil, errors.New(`describe: no list "SpotPriceHistory": want the JSON that "aws ec2 describe-spot-price-history" prints`)
		}
		for i, p := range *page.SpotPriceHistory {
			if p.ProductDescription != "" && p.ProductDescription != "Linux/UNIX" && p.ProductDescription != "Linux/UNIX (Amazon VPC)" {
				continue
			}
			price, err := strconv.ParseFloat(p.SpotPrice, 64)
			if err != nil || !(price > 0) || math.IsInf(price, 0) || p.InstanceType == "" || p.AvailabilityZone == "" {
				errs = append(errs, fmt.Errorf("describe: SpotPriceHistory[%d] (%s in %s): price %q: want type, zone and a price above 0", i, p.InstanceType, p.AvailabilityZone, p.SpotPrice))
				continue
			}
			at := [2]string{p.InstanceType, p.AvailabilityZone}
			// Timestamps are ISO 8601 in one time zone, so text order is time order.
			if seen, ok := newest[at]; ok && seen >= p.Timestamp {
				continue
			}
			newest[at] = p.Timestamp
			if out.Zones[p.InstanceType] == nil {
				out.Zones[p.InstanceType] = map[string]float64{}
			}
			out.Zones[p.InstanceType][p.AvailabilityZone] = price
			if len(p.Timestamp) >= len("2006-01-02") {
				out.Date = max(out.Date, p.Timestamp[:len("2006-01-02")])
			}
		}
	}
	if pages == 0 {
		return SpotPrices{}, nil, errors.New(`describe: empty input: want the JSON that "aws ec2 describe-spot-price-history" prints`)
	}
	return out, errors.Join(errs...), nil
}
