package describe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// ReadOfferings reads the output of `aws ec2 describe-instance-type-offerings --location-type
// availability-zone`, one page or several in sequence. The result is, by type, the names of the
// zones that offer it, ascending.
func ReadOfferings(data []byte) (map[string][]string, error) {
	out := map[string][]string{}
	dec := json.NewDecoder(bytes.NewReader(data))
	pages := 0
	for ; dec.More(); pages++ {
		var page struct {
			InstanceTypeOfferings *[]struct{ InstanceType, LocationType, Location string }
		}
		if err := dec.Decode(&page); err != nil {
			return nil, fmt.Errorf("describe: %w", syntax(err))
		}
		if page.InstanceTypeOfferings == nil {
			return nil, errors.New(`describe: no list "InstanceTypeOfferings": want the JSON that "aws ec2 describe-instance-type-offerings" prints`)
		}
		for i, o := range *page.InstanceTypeOfferings {
			if o.LocationType != "availability-zone" || o.InstanceType == "" || o.Location == "" {
				return nil, fmt.Errorf("describe: InstanceTypeOfferings[%d] (%s in %s %s): want a type in an availability-zone: ask with --location-type availability-zone", i, o.InstanceType, o.LocationType, o.Location)
			}
			out[o.InstanceType] = append(out[o.InstanceType], o.Location)
		}
	}
	if pages == 0 {
		return nil, errors.New(`describe: empty input: want the JSON that "aws ec2 describe-instance-type-offerings" prints`)
	}
	for name, zones := range out {
		slices.Sort(zones)
		out[name] = slices.Compact(zones)
	}
	return out, nil
}
