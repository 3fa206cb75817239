package inputs

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes/pricing"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/buffer"
)

// Objective is the flags about the cost of a node beyond its price. Programs that buy nodes and
// programs that give them back must use the same objective. Otherwise one undoes what the other
// did. The zero value is the price.
type Objective struct {
	factors      []string
	perNode      float64
	interruption float64
	rates        string
	cost         float64
}

// Register adds the flags.
func (o *Objective) Register(set *pflag.FlagSet) {
	set.StringArrayVar(&o.factors, "factor", nil, "'REQUIREMENTS: NUMBER': multiply the price of what matches by NUMBER, for example 'karpenter.k8s.aws/instance-generation<6: 1.3' (repeatable, the first that matches)")
	set.Float64Var(&o.perNode, "per-node", 0, "additional dollars an hour for each node, such as for a licence")
	set.Float64Var(&o.interruption, "interruption", 0, "additional cost of spot capacity as a fraction of its price, such as 0.2, where --interruption-rates has no rate")
	set.StringVar(&o.rates, "interruption-rates", "", "`FILE` of lines INSTANCE-TYPE,ZONE,RATE: how many times an hour spot capacity is interrupted; an empty type or zone means any")
	set.Float64Var(&o.cost, "interruption-cost", 0, "dollars that one interruption costs, with --interruption-rates")
}

// Parse returns what the flags say. The error reports all faults at once.
func (o *Objective) Parse() (*plan.Objective, error) {
	out := &plan.Objective{PerNode: o.perNode, Interruption: o.interruption}
	var errs []error
	bad := func(flag string, value any, want string) {
		errs = append(errs, fmt.Errorf("--%s %v: want %s", flag, value, want))
	}
	if !(o.perNode >= 0) || o.perNode > 1e6 {
		bad("per-node", o.perNode, "dollars an hour, not negative")
	}
	if !(o.interruption >= 0) || o.interruption > 1e6 {
		bad("interruption", o.interruption, "a part of the price, not negative")
	}
	if !(o.cost >= 0) || o.cost > 1e6 {
		bad("interruption-cost", o.cost, "dollars, not negative")
	}
	if o.rates == "" && o.cost > 0 {
		errs = append(errs, errors.New("--interruption-cost: want --interruption-rates, too: they say how often spot capacity is interrupted"))
	} else if o.rates != "" && o.cost == 0 && o.interruption == 0 {
		errs = append(errs, errors.New("--interruption-rates: want --interruption-cost, too: it says what an interruption costs"))
	} else if o.rates != "" {
		data, err := readFile("--interruption-rates", o.rates)
		if err == nil {
			out.Interruptions = &plan.Interruptions{Cost: o.cost}
			out.Interruptions.PerHour, err = interruptionRates(o.rates, data)
		}
		errs = append(errs, err)
	}
	for _, text := range o.factors {
		at := strings.LastIndexByte(text, ':')
		if at < 0 {
			bad("factor", strconv.Quote(text), `"REQUIREMENTS: NUMBER"`)
			continue
		}
		match, err := requirements.Parse(strings.TrimSpace(text[:at]))
		if err != nil {
			errs = append(errs, fmt.Errorf("--factor %q: %w", text, err))
			continue
		}
		times, err := strconv.ParseFloat(strings.TrimSpace(text[at+1:]), 64)
		if err != nil || !(times > 0) || times > 1e6 {
			bad("factor", strconv.Quote(text), "a positive number after the colon")
			continue
		}
		out.Factors = append(out.Factors, plan.Factor{Match: match, Times: times})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, Bad(err)
	}
	return out, nil
}

// interruptionRates reads lines of instance type, zone and interruptions per hour. The most
// specific line applies.
func interruptionRates(name string, data []byte) (func(instanceType, zone string) (float64, bool), error) {
	r := csv.NewReader(bytes.NewReader(data))
	r.Comment, r.FieldsPerRecord, r.TrimLeadingSpace = '#', 3, true
	rates := map[[2]string]float64{}
	var errs []error
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w: want lines of INSTANCE-TYPE,ZONE,RATE", name, err)
		}
		line, _ := r.FieldPos(2)
		key := [2]string{strings.TrimSpace(record[0]), strings.TrimSpace(record[1])}
		rate, err := strconv.ParseFloat(strings.TrimSpace(record[2]), 64)
		switch _, twice := rates[key]; {
		case err != nil || !(rate >= 0) || rate > 3600:
			errs = append(errs, fmt.Errorf("%s:%d: rate %q: want interruptions an hour, such as 0.002", name, line, record[2]))
		case twice:
			errs = append(errs, fmt.Errorf("%s:%d: type %q in zone %q already has a rate", name, line, key[0], key[1]))
		}
		rates[key] = rate
	}
	return func(instanceType, zone string) (float64, bool) {
		for _, key := range [][2]string{{instanceType, zone}, {instanceType, ""}, {"", zone}, {"", ""}} {
			if rate, ok := rates[key]; ok {
				return rate, true
			}
		}
		return 0, false
	}, errors.Join(errs...)
}

// SavingsPlan reads "REQUIREMENTS: DOLLARS at PERCENT%": what it covers, the amount committed per
// hour, and its discount.
func SavingsPlan(text string) (pricing.Commitment, error) {
	bad := func(err error) (pricing.Commitment, error) {
		return pricing.Commitment{}, Bad(fmt.Errorf("--savings-plan %q: %w", text, err))
	}
	form := errors.New(`want "REQUIREMENTS: DOLLARS at PERCENT%", such as "karpenter.k8s.aws/instance-family in (m7i): 2.5 at 28%"`)
	at := strings.LastIndexByte(text, ':')
	dollars, percent, ok := strings.Cut(text[at+1:], "at")
	if at < 0 || !ok {
		return bad(form)
	}
	match, err := requirements.Parse(strings.TrimSpace(text[:at]))
	if err != nil {
		return bad(err)
	}
	out := pricing.Commitment{Name: "savings plan", Match: match}
	percent, ok = strings.CutSuffix(strings.TrimSpace(percent), "%")
	var wrong [2]error
	out.PerHour, wrong[0] = strconv.ParseFloat(strings.TrimSpace(dollars), 64)
	out.PercentOff, wrong[1] = strconv.ParseFloat(percent, 64)
	if !ok || wrong != [2]error{} || !(out.PerHour > 0) || out.PerHour > 1e6 || !(out.PercentOff >= 0) || out.PercentOff >= 100 {
		return bad(form)
	}
	return out, nil
}

// Kind returns the kind that a word means, in lower case and as kubectl shortens it, too: deploy is
// Deployment. It returns any other word as it is.
func Kind(word string) string {
	known := map[string]string{"deployment": "Deployment", "deploy": "Deployment", "statefulset": "StatefulSet", "sts": "StatefulSet", "replicaset": "ReplicaSet", "rs": "ReplicaSet"}
	return cmp.Or(known[strings.ToLower(word)], word)
}

// headroom reads a flag such as shop/deployment/web=20% as a buffer.
func headroom(text string) (buffer.Buffer, error) {
	const want = "want [NAMESPACE/]KIND/NAME=PODS or =PERCENT%, such as shop/deployment/web=20%"
	of, size, found := strings.Cut(text, "=")
	parts := strings.Split(of, "/")
	number, percent := strings.CutSuffix(size, "%")
	n, err := strconv.ParseInt(number, 10, 32)
	if !found || err != nil || n < 0 || len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
		return buffer.Buffer{}, Bad(fmt.Errorf("--headroom %q: %s", text, want))
	}
	name := parts[len(parts)-1]
	kind := Kind(parts[len(parts)-2])
	if !slices.Contains([]string{"Deployment", "StatefulSet", "ReplicaSet"}, kind) {
		return buffer.Buffer{}, Bad(fmt.Errorf("--headroom %q: kind %q: want deployment, statefulset or replicaset", text, parts[len(parts)-2]))
	}
	b := buffer.Buffer{Namespace: corev1.NamespaceDefault, Name: "headroom-" + strings.ToLower(kind) + "-" + name, Scalable: buffer.Reference{Kind: kind, Name: name}}
	if len(parts) == 3 {
		b.Namespace = parts[0]
	}
	if pods := int32(n); percent {
		b.Percentage = &pods
	} else {
		b.Replicas = &pods
	}
	return b, nil
}
