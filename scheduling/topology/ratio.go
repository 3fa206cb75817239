package topology

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// RatioAnnotation is the annotation of pods that are to be divided over the values of a node label by fixed shares, such
// as "karpenter.sh/capacity-type: on-demand=2, spot=3". All pods of a namespace with the same text are divided together,
// those that run already included, as exactly as whole pods can be; a name and a semicolon in front keep apart what would
// have the same text: "web; karpenter.sh/capacity-type: on-demand=1, spot=1". It is a hard constraint on the plan, of
// which kube-scheduler knows nothing.
const RatioAnnotation = "joinery-sdk.dev/ratio"

// ratio is how many pods of a group go to each value at most.
type ratio struct{ group int }

// parseRatio reads the text of the annotation.
func parseRatio(text string) (key string, shares map[string]int, err error) {
	rest := text
	if _, after, ok := strings.Cut(text, ";"); ok {
		rest = after
	}
	key, list, ok := strings.Cut(rest, ":")
	if key = strings.TrimSpace(key); !ok || key == "" {
		return "", nil, fmt.Errorf("%q: want a label key, a colon and shares, such as \"karpenter.sh/capacity-type: on-demand=2, spot=3\"", text)
	}
	if key == corev1.LabelHostname {
		return "", nil, fmt.Errorf("%q: nodes have no names yet; divide by another label than %s", text, key)
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

// ratio reads the annotation of a class.
func (r *reader) ratio(c *class) error {
	text, ok := c.Pod.Annotations[RatioAnnotation]
	if !ok {
		return nil
	}
	key, shares, err := parseRatio(text)
	if err != nil {
		return fmt.Errorf("metadata.annotations[%s]: %w", RatioAnnotation, err)
	}
	id := fmt.Sprintf("ratio %s|%s", c.Pod.Namespace, text)
	g, ok := r.byText[id]
	if !ok {
		g = len(r.p.groups)
		r.byText[id] = g
		group := newGroup(r.aliases.Key(key), map[string]bool{c.Pod.Namespace: true}, labels.Nothing(), nil, id)
		group.shares, group.annotation = shares, text
		group.what = "pods of ratio " + text
		r.p.groups = append(r.p.groups, group)
	}
	c.ratios = append(c.ratios, ratio{g})
	return nil
}

// divide finds the members of each ratio, and how many of them each value may have: its share, the pods left over by
// rounding down going to the largest remainders, of equals to the first value.
func (p *Problem) divide() {
	for i := range p.classes {
		c := &p.classes[i]
		for _, r := range c.ratios {
			p.groups[r.group].members = append(p.groups[r.group].members, i)
			c.memberOf = append(c.memberOf, r.group)
		}
	}
	for _, g := range p.groups {
		if g.shares == nil {
			continue
		}
		total := 0
		for _, i := range g.members {
			total += p.classes[i].Count
		}
		for i := range p.nodes {
			for _, pod := range p.nodes[i].Running {
				if pod.DeletionTimestamp == nil && g.namespaces[pod.Namespace] && pod.Annotations[RatioAnnotation] == g.annotation {
					total++
					if value, ok := p.nodes[i].value(g.key); ok {
						g.counts[value]++
					}
				}
			}
		}
		g.most = apportion(total, g.shares)
	}
}

// apportion divides the total by the shares, by the method of largest remainders.
func apportion(total int, shares map[string]int) map[string]int {
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
