package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/examples/operator/sandbox"
)

// wave is how many nodes' pods are there at once to wait: kube-scheduler tries every pending pod
// again whenever a node joins, and with 50,000 of them two cores do little else.
const wave = 1000

// grow has the operator bring up nodes for ten pods each, in ten deployments, gives them back, and
// writes what that took.
func grow(ctx context.Context, s side, bin, dir string, nodes int, out string, progress io.Writer) error {
	c, api, cached, end, err := start(ctx, s, bin, dir)
	if err != nil {
		return err
	}
	text, err := grown(ctx, c.Config, api, cached, nodes, progress)
	cpu, memory := end()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, dir)
	}
	return section(out, fmt.Sprintf("%d nodes", nodes), text+fmt.Sprintf("| seconds of CPU of the operator | %.1f |\n| MiB of its memory at most | %.0f |\n", cpu, memory))
}

func grown(ctx context.Context, cfg *rest.Config, api client.Client, cached client.Reader, nodes int, progress io.Writer) (string, error) {
	d := &day{api: api, cached: cached, progress: progress, price: map[string]float64{}}
	objects := []client.Object{sandbox.Class(), sandbox.Pool("default", func(p *karpv1.NodePool) {
		p.Spec.Template.Spec.Requirements = append(p.Spec.Template.Spec.Requirements, // of four cores, less what the system takes
			sandbox.Require("node.kubernetes.io/instance-type", "c-4x-amd64-linux", "s-4x-amd64-linux", "m-4x-amd64-linux"))
	})}
	for i := range 10 { // the pods of a node take about 3.8 cores, each kind another amount
		app := sandbox.Inflate(fmt.Sprintf("app-%d", i), 0, fmt.Sprintf("%dm", 335+10*i), "256Mi")
		d.apps, d.sizes = append(d.apps, app), append(d.sizes, int32(nodes))
		objects = append(objects, app)
	}
	for _, o := range objects {
		if err := api.Create(ctx, o); err != nil {
			return "", err
		}
	}
	before, _, err := answered(ctx, cfg)
	if err != nil {
		return "", err
	}
	begin, last := time.Now(), seen{}
	limit := time.Duration(max(nodes, 1000)) * 2 * time.Second // for each of the two ways
	var creating, binding time.Duration
	var dollars float64
	for have := 0; have < nodes; {
		have = min(have+wave, nodes)
		start, created := time.Now(), time.Time{}
		if err := d.scale(ctx, parts(len(d.apps), float64(have)/float64(nodes))); err != nil {
			return "", err
		}
		err = d.watch(ctx, limit, &dollars, func(s seen) bool {
			if last = s; created.IsZero() && s.pods == 10*have {
				created = time.Now()
			}
			return s.bound == 10*have
		})
		if err != nil {
			return "", fmt.Errorf("%w: %+v", err, last)
		}
		creating, binding = creating+created.Sub(start), binding+time.Since(created)
		_, _ = fmt.Fprintf(progress, "  %.0f s: %d pods are bound to %d nodes\n", time.Since(begin).Seconds(), last.bound, last.nodes)
	}
	bound := time.Now()
	after, _, err := answered(ctx, cfg)
	if err != nil {
		return "", err
	}
	up := last.nodes
	if err := d.scale(ctx, parts(len(d.apps), 0)); err != nil {
		return "", err
	}
	if err := d.watch(ctx, limit, &dollars, func(s seen) bool { last = s; return s.nodes == 0 && s.claims == 0 && s.pods == 0 }); err != nil {
		return "", fmt.Errorf("%w: %+v", err, last)
	}
	return fmt.Sprintf(`Written by `+"`make scale-cluster`"+` on %s%s. The operator alone, with its defaults, on a cluster of kwok, which shares the machine.

| | |
| --- | --: |
| pods, in waves of %d | %d |
| nodes when all were bound | %d |
| seconds until all pods were there | %.0f |
| seconds from then until all were bound | %.0f |
| requests a second to the API server meanwhile, of all its clients | %.0f |
| seconds until nothing was left | %.0f |
`, begin.Format(time.DateOnly), load(), 10*wave, 10*nodes, up, creating.Seconds(), binding.Seconds(), (after-before)/bound.Sub(begin).Seconds(),
		time.Since(bound).Seconds()), nil
}

// parts is the same part of each deployment.
func parts(n int, part float64) []float64 { return slices.Repeat([]float64{part}, n) }

// answered is how many requests the API server has answered, and how many evictions it has granted,
// by its own metrics.
func answered(ctx context.Context, cfg *rest.Config) (all, evictions float64, err error) {
	web, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return 0, 0, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, cfg.Host+"/metrics", nil)
	if err != nil {
		return 0, 0, err
	}
	answer, err := web.Do(request)
	if err != nil {
		return 0, 0, err
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		labels, value, ok := strings.Cut(strings.TrimPrefix(lines.Text(), "apiserver_request_total{"), "} ")
		if !ok || !strings.HasPrefix(lines.Text(), "apiserver_request_total{") {
			continue
		}
		var n float64
		_, _ = fmt.Sscan(value, &n)
		all += n
		if strings.Contains(labels, `subresource="eviction"`) && strings.Contains(labels, `code="201"`) {
			evictions += n
		}
	}
	return all, evictions, lines.Err()
}

// load says how busy the machine was in the last minutes, where it tells.
func load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	return ", with a load of " + strings.Join(strings.Fields(string(data))[:3], ", ") + " at the end"
}
