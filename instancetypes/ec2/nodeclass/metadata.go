package nodeclass

import (
	"maps"
	"slices"
	"strings"
)

type wireMetadata struct {
	HTTPEndpoint            *string `json:"httpEndpoint"`
	HTTPProtocolIPv6        *string `json:"httpProtocolIPv6"`
	HTTPPutResponseHopLimit *int64  `json:"httpPutResponseHopLimit"`
	HTTPTokens              *string `json:"httpTokens"`
}

// metadata reads the options. Missing options have the version's defaults; hops is the default that
// has changed.
func (r *report) metadata(path string, w *wireMetadata, hops int64) MetadataOptions {
	m := MetadataOptions{Endpoint: "enabled", IPv6: "disabled", HopLimit: hops, Tokens: "required"}
	if w == nil {
		return m
	}
	word := func(field string, p *string, into *string, allowed ...string) {
		if p != nil {
			r.oneOf(path+"."+field, *p, allowed...)
			*into = *p
		}
	}
	word("httpEndpoint", w.HTTPEndpoint, &m.Endpoint, "enabled", "disabled")
	word("httpProtocolIPv6", w.HTTPProtocolIPv6, &m.IPv6, "enabled", "disabled")
	word("httpTokens", w.HTTPTokens, &m.Tokens, "required", "optional")
	if w.HTTPPutResponseHopLimit != nil {
		if m.HopLimit = *w.HTTPPutResponseHopLimit; m.HopLimit < 1 || m.HopLimit > 64 {
			r.bad(path+".httpPutResponseHopLimit", "%d: want 1 to 64", m.HopLimit)
		}
	}
	return m
}

// tags rejects empty keys and keys that belong to the controller. In v1alpha1 users could override
// more keys.
func (r *report) tags(path string, tags map[string]string, owned ...string) {
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		switch {
		case key == "":
			r.bad(path, "an empty key")
		case slices.Contains(owned, key) || strings.HasPrefix(key, "kubernetes.io/cluster"):
			r.bad(path, "%q: the controller sets this tag itself", key)
		}
	}
}
