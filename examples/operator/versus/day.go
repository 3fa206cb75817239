package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/examples/operator/sandbox"
	"github.com/joinery-sdk/joinery/instancetypes"
)

const (
	respite = 60 * time.Second // how long the day rests after each step, so that consolidation can show what it does
	limit   = 5 * time.Minute  // for one step
	beat    = 250 * time.Millisecond
)

// result is what one side took for the day.
type result struct {
	Side                       string
	Pods                       int
	Steps                      []step
	Gone, Dollars, CPU, Memory float64
	Evictions                  float64
}

// step is one change of the workload. Seconds are until the last pod is bound, Price is then and
// Rest after the rest.
type step struct {
	Name                 string
	Seconds, Price, Rest float64
	Nodes                int
}

// day is the workload and what is measured of it.
type day struct {
	api      client.Client
	cached   client.Reader // so that looking costs the API server nothing
	progress io.Writer
	price    map[string]float64 // by type, zone and capacity type
	apps     []*appsv1.Deployment
	sizes    []int32
}

func newDay(api client.Client, cached client.Reader, catalogue []instancetypes.InstanceType, scale float64, progress io.Writer) *day {
	d := &day{api: api, cached: cached, progress: progress, price: map[string]float64{}}
	for _, t := range catalogue {
		for _, o := range t.Offerings {
			zone, _ := o.Requirements.Get(corev1.LabelTopologyZone).Single()
			d.price[t.Name+"/"+zone+"/"+o.CapacityType()] = o.Price
		}
	}
	spread := func(p *corev1.PodTemplateSpec) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels},
		}}
	}
	for _, a := range []struct {
		name, cpu, memory string
		replicas          float64
		changes           []func(*corev1.PodTemplateSpec)
	}{
		{"web", "250m", "512Mi", 100, nil},
		{"api", "700m", "1500Mi", 60, nil},
		{"cache", "400m", "6Gi", 30, nil},
		{"batch", "3200m", "3Gi", 20, nil},
		{"front", "500m", "1Gi", 40, []func(*corev1.PodTemplateSpec){spread}},
	} {
		d.apps = append(d.apps, sandbox.Inflate(a.name, 0, a.cpu, a.memory, a.changes...))
		d.sizes = append(d.sizes, int32(a.replicas*scale))
	}
	return d
}

// play plays the day.
func (d *day) play(ctx context.Context) (result, error) {
	objects := []client.Object{sandbox.Class(), sandbox.Pool("default")}
	for _, a := range d.apps {
		objects = append(objects, a)
	}
	for _, o := range objects {
		if err := d.api.Create(ctx, o); err != nil {
			return result{}, err
		}
	}
	var out result
	for _, n := range d.sizes {
		out.Pods += int(n)
	}
	share := func(parts ...float64) []float64 { return parts }
	for _, s := range []struct {
		name  string
		parts []float64
	}{
		{"scale up", share(1, 1, 1, 1, 1)},
		{"churn", share(0.3, 1.4, 0.5, 0.2, 1.2)},
		{"one in ten is left", share(0.1, 0.1, 0.1, 0.1, 0.1)},
	} {
		one, err := d.step(ctx, s.name, s.parts, &out.Dollars)
		if err != nil {
			return out, err
		}
		out.Steps = append(out.Steps, one)
	}
	start := time.Now()
	if err := d.scale(ctx, share(0, 0, 0, 0, 0)); err != nil {
		return out, err
	}
	err := d.watch(ctx, limit, &out.Dollars, func(s seen) bool { return s.nodes == 0 && s.claims == 0 && s.pods == 0 })
	out.Gone = time.Since(start).Seconds()
	return out, err
}

// step scales, waits until all pods are bound, and then rests.
func (d *day) step(ctx context.Context, name string, parts []float64, dollars *float64) (step, error) {
	out := step{Name: name}
	start := time.Now()
	if err := d.scale(ctx, parts); err != nil {
		return out, err
	}
	want := 0
	for i, p := range parts {
		want += int(float64(d.sizes[i]) * p)
	}
	var last seen
	err := d.watch(ctx, limit, dollars, func(s seen) bool { last = s; return s.bound == want && s.pods == want })
	if err != nil {
		return out, fmt.Errorf("%s: %w: %+v, want %d pods", name, err, last, want)
	}
	out.Seconds, out.Nodes, out.Price = time.Since(start).Seconds(), last.nodes, last.price
	end := time.Now().Add(respite)
	err = d.watch(ctx, 2*respite, dollars, func(s seen) bool { last = s; return time.Now().After(end) })
	out.Rest = last.price
	_, _ = fmt.Fprintf(d.progress, "  %s: %.1f s, %d nodes, $%.3f/h, then $%.3f/h\n", name, out.Seconds, out.Nodes, out.Price, out.Rest)
	return out, err
}

func (d *day) scale(ctx context.Context, parts []float64) error {
	var errs []error
	for i, a := range d.apps {
		n := int32(math.Round(float64(d.sizes[i]) * parts[i]))
		patch := client.MergeFrom(a.DeepCopy())
		a.Spec.Replicas = &n
		errs = append(errs, d.api.Patch(ctx, a, patch))
	}
	return errors.Join(errs...)
}

// seen is what there is at a moment.
type seen struct {
	pods, bound, nodes, claims int
	price                      float64
}

// watch looks until the condition holds, and adds up what the nodes cost meanwhile.
func (d *day) watch(ctx context.Context, limit time.Duration, dollars *float64, until func(seen) bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	last := time.Now()
	for {
		now := time.Now()
		s, err := d.look(ctx)
		if err != nil {
			return err
		}
		*dollars += s.price * now.Sub(last).Hours()
		last = now
		if until(s) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(max(beat, 9*time.Since(now))): // looking takes a tenth of a core at most
		}
	}
}

func (d *day) look(ctx context.Context) (seen, error) {
	var pods corev1.PodList
	var nodes corev1.NodeList
	var claims karpv1.NodeClaimList
	for _, list := range []client.ObjectList{&pods, &nodes, &claims} { // read only, so there is no need for copies
		if err := d.cached.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return seen{}, err
		}
	}
	s := seen{pods: len(pods.Items), nodes: len(nodes.Items), claims: len(claims.Items)}
	for i := range pods.Items {
		if pods.Items[i].Spec.NodeName != "" && pods.Items[i].DeletionTimestamp == nil {
			s.bound++
		}
	}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		s.price += d.price[n.Labels[corev1.LabelInstanceTypeStable]+"/"+n.Labels[corev1.LabelTopologyZone]+"/"+n.Labels[karpv1.CapacityTypeLabelKey]]
	}
	return s, nil
}
