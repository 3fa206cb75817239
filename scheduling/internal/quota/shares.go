// Package quota divides pods over the values of a label by fixed shares, as the annotation
// joinery-sdk.dev/ratio asks. It has nothing to do with CapacityQuotas.
package quota

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// ParseShares reads a label key and the shares of its values, such as "karpenter.sh/capacity-type:
// on-demand=2, spot=3". A name and a semicolon may stand in front. Shares are whole numbers, not
// all 0; the errors quote the text.
func ParseShares(text string) (key string, shares map[string]int, err error) {
	rest := text
	if _, after, ok := strings.Cut(text, ";"); ok {
		rest = after
	}
	key, list, ok := strings.Cut(rest, ":")
	if key = strings.TrimSpace(key); !ok || key == "" {
		return "", nil, fmt.Errorf("%q: want a label key, a colon and shares, such as \"karpenter.sh/capacity-type: on-demand=2, spot=3\"", text)
	}
	if key == corev1.LabelHostname {
		return "", nil, fmt.Errorf("%q: nodes have no names yet; divide by a label other than %s", text, key)
	}
	shares = map[string]int{}
	for part := range strings.SplitSeq(list, ",") {
		value, share, ok := strings.Cut(part, "=")
		n, err := strconv.Atoi(strings.TrimSpace(share))
		if value = strings.TrimSpace(value); !ok || value == "" || err != nil || n < 0 || n > 1_000_000 {
			return "", nil, fmt.Errorf("%q: %q: want a value and its share, such as spot=3", text, strings.TrimSpace(part))
		}
		if _, twice := shares[value]; twice {
			return "", nil, fmt.Errorf("%q: %q has two shares", text, value)
		}
		shares[value] = n
	}
	if sum(shares) == 0 {
		return "", nil, fmt.Errorf("%q: the shares are all 0", text)
	}
	return key, shares, nil
}

// Apportion divides the total by the shares, by the method of largest remainders. Of equal
// remainders the first value gets more. The shares must not all be 0.
func Apportion(total int, shares map[string]int) map[string]int {
	values := slices.Sorted(maps.Keys(shares))
	all := sum(shares)
	out := make(map[string]int, len(shares))
	left := total
	for _, v := range values {
		out[v] = total * shares[v] / all
		left -= out[v]
	}
	slices.SortStableFunc(values, func(a, b string) int {
		return cmp.Compare(total*shares[b]%all, total*shares[a]%all)
	})
	for _, v := range values[:left] {
		out[v]++
	}
	return out
}

func sum(shares map[string]int) int {
	n := 0
	for _, s := range shares {
		n += s
	}
	return n
}
