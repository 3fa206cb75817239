package discovery

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
)

// Filters turns a selector into filters of EC2, with one list for each call. A resource is selected
// if all filters of one list match it. Terms that only name ids become one list, under the filter
// idName; names go under nameName. Wildcards in values are EC2's own, * and ?.
func Filters(terms []nodeclass.Term, idName, nameName string) [][]types.Filter {
	var ids []string
	var out [][]types.Filter
	for _, t := range terms {
		if len(t.IDs) > 0 && len(t.Names) == 0 && len(t.Tags) == 0 {
			ids = append(ids, t.IDs...)
			continue
		}
		var filters []types.Filter
		if len(t.IDs) > 0 {
			filters = append(filters, filter(idName, t.IDs...))
		}
		if len(t.Names) > 0 {
			filters = append(filters, filter(nameName, t.Names...))
		}
		for _, tag := range t.Tags {
			if len(tag.Values) == 0 || slices.Equal(tag.Values, []string{"*"}) {
				filters = append(filters, filter("tag-key", tag.Key))
				continue
			}
			filters = append(filters, filter("tag:"+tag.Key, tag.Values...))
		}
		if len(filters) > 0 {
			out = append(out, filters)
		}
	}
	if len(ids) > 0 {
		slices.Sort(ids)
		out = append([][]types.Filter{{filter(idName, slices.Compact(ids)...)}}, out...)
	}
	return out
}

func filter(name string, values ...string) types.Filter {
	return types.Filter{Name: aws.String(name), Values: slices.Clone(values)}
}

// key returns a text that is equal for equal selectors.
func key(parts ...any) string {
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, "%+v\x00", p)
	}
	return b.String()
}
