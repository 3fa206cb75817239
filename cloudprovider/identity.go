package cloudprovider

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/requirements"
)

// mostToken is the maximum length of a token. It leaves room for the UID of a Kubernetes object (36
// characters) or for an object's name with a prefix.
const mostToken = 128

// tokenFault returns what is wrong with a token, or an empty string.
func tokenFault(token string) string {
	if token == "" {
		return "required; one that was never used before, and the same for every retry"
	}
	if len(token) > mostToken {
		return fmt.Sprintf("%d characters: at most %d", len(token), mostToken)
	}
	for _, r := range token {
		if r > 'z' || !strings.ContainsRune("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz.-_/:", r) {
			return fmt.Sprintf("%q is not one of A-Z a-z 0-9 . - _ / :", r)
		}
	}
	return ""
}

// Identity returns a hash of everything that [NodeClaim.Equal] compares. Equal claims have the same
// hash; other claims have another one. It has 64 hexadecimal characters and is the same in every
// process and version. So a provider can keep it beside a token in place of the claim, which may
// have thousands of candidates.
func (c NodeClaim) Identity() string {
	type taint struct{ Key, Value, Effect string }
	taints := func(list []corev1.Taint) (out []taint) {
		for _, t := range list {
			out = append(out, taint{t.Key, t.Value, string(t.Effect)})
		}
		return out
	}
	requests := map[string]string{}
	for name, q := range c.Requests { // "1000m" and "1" are equal
		requests[string(name)] = resource.NewDecimalQuantity(*q.AsDec(), resource.DecimalSI).String()
	}
	text := offeringTexts{}
	h := sha256.New()
	e := json.NewEncoder(h)
	_ = e.Encode([]any{ // strings, lists and maps of strings: it cannot fail
		1, c.Name, c.Token, c.Pool, c.NodeClass.Group, c.NodeClass.Kind, c.NodeClass.Name, c.Requirements.String(), requests,
		entries(c.Labels), taints(c.Taints), taints(c.StartupTaints),
	})
	for _, cand := range c.Candidates {
		_ = e.Encode([]string{cand.Type, text.of(cand.Offering)})
	}
	return hex.EncodeToString(h.Sum(nil))
}

// entries returns the map with nil and empty made the same.
func entries(m map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, m)
	return out
}

// offeringTexts formats each set only once: a claim has thousands of candidates but a dozen
// offerings.
type offeringTexts map[string]string

func (t offeringTexts) of(s requirements.Set) string {
	key := string(s.AppendKey(nil))
	text, ok := t[key]
	if !ok {
		text = s.String()
		t[key] = text
	}
	return text
}

// plainClaim is a claim without methods.
type plainClaim NodeClaim

// writtenClaim is the JSON form of a claim. A candidate is the index of its offering and a type
// name.
type writtenClaim struct {
	plainClaim
	Offerings  []requirements.Set `json:",omitempty"`
	Candidates []string
}

// MarshalJSON writes each offering once, and each candidate as an index and a type: "3 m5.large".
func (c NodeClaim) MarshalJSON() ([]byte, error) {
	out := writtenClaim{plainClaim: plainClaim(c)}
	index := map[string]int{}
	for _, cand := range c.Candidates {
		key := string(cand.Offering.AppendKey(nil))
		at, ok := index[key]
		if !ok {
			at = len(out.Offerings)
			index[key], out.Offerings = at, append(out.Offerings, cand.Offering)
		}
		out.Candidates = append(out.Candidates, strconv.Itoa(at)+" "+cand.Type)
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *NodeClaim) UnmarshalJSON(data []byte) error {
	var in writtenClaim
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	out := NodeClaim(in.plainClaim)
	out.Candidates = nil
	for i, text := range in.Candidates {
		number, name, ok := strings.Cut(text, " ")
		at, err := strconv.Atoi(number)
		if !ok || err != nil || at < 0 || at >= len(in.Offerings) {
			return &InvalidError{Path: fmt.Sprintf("candidates[%d]", i), Detail: fmt.Sprintf("%q: want the index of one of %d offerings and a type", text, len(in.Offerings))}
		}
		out.Candidates = append(out.Candidates, Candidate{Type: name, Offering: in.Offerings[at]})
	}
	out.Candidates = slices.Clip(out.Candidates)
	*c = out
	return nil
}
