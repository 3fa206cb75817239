// Versus plays the same day twice on the same kind of cluster: with Karpenter and its KWOK
// provider, and with the operator and the memory provider, both with the catalogue of Karpenter's
// KWOK provider. It writes how much time, money and work each of them needed for that day.
//
// With --nodes it has the operator alone bring up a large cluster, and writes what that took.
//
//	go run ./versus [-o VERSUS.md] [--scale 1 | --nodes 1000]
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"text/template"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/joinery-sdk/joinery/examples/operator/cluster"
	"github.com/joinery-sdk/joinery/examples/operator/crds"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/kwok"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "versus:", err)
		os.Exit(1)
	}
}

// side is one of the two.
type side struct {
	name    string
	command []string
	env     []string
}

func run(ctx context.Context, args []string, progress io.Writer) error {
	set := pflag.NewFlagSet("versus", pflag.ContinueOnError)
	out := set.StringP("output", "o", "VERSUS.md", "the file to write")
	scale := set.Float64("scale", 1, "how many times the pods of the day")
	keep := set.String("logs", "", "a folder that keeps the logs; empty for none")
	nodes := set.Int("nodes", 0, "instead of the day, see how the operator brings up so many nodes, with ten pods each")
	if err := set.Parse(args); errors.Is(err, pflag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	ctrl.SetLogger(zap.New(zap.WriteTo(io.Discard)))
	dir := *keep
	if dir == "" {
		temporary, err := os.MkdirTemp("", "joinery-versus-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(temporary)
		dir = temporary
	}
	bin, err := cluster.Build(ctx, progress)
	if err != nil {
		return err
	}
	karpenter, operator, types, err := build(ctx, bin, dir, progress)
	if err != nil {
		return err
	}
	sides := []side{
		{"Karpenter v1.15.0", []string{karpenter, "--metrics-port=0", "--health-probe-port=0", "--instance-types-file-path=" + types.original}, []string{"DISABLE_LEADER_ELECTION=true", "SYSTEM_NAMESPACE=kube-system"}},
		{"operator", []string{operator, "--metrics-bind-address=", "--health-probe-bind-address=", "--boot=0s", "--instance-types=" + types.file}, nil},
	}
	if *nodes > 0 {
		return grow(ctx, sides[1], bin, filepath.Join(dir, "grow"), *nodes, *out, progress)
	}
	var results []result
	for _, s := range sides {
		_, _ = fmt.Fprintln(progress, s.name)
		r, err := play(ctx, s, bin, filepath.Join(dir, strings.Fields(s.name)[0]), types.list, *scale, progress)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		results = append(results, r)
	}
	return write(*out, results)
}

// catalogue is what both sell: Karpenter's file, and the same with what Karpenter's code takes off
// each node.
type catalogue struct {
	original, file string
	list           []instancetypes.InstanceType
}

// build builds the two programs, and writes the catalogue down.
func build(ctx context.Context, bin, dir string, progress io.Writer) (karpenter, operator string, types catalogue, err error) {
	karpenter, operator = filepath.Join(bin, "karpenter-kwok"), filepath.Join(dir, "operator-program")
	source, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", "github.com/joinery-sdk/joinery/examples/operator").Output()
	if err != nil {
		return "", "", types, err
	}
	root := strings.TrimSpace(string(source))
	if _, err := os.Stat(karpenter); err != nil {
		_, _ = fmt.Fprintln(progress, "building Karpenter ...")
		if err := cluster.BuildProgram(ctx, filepath.Join(root, "versus", "karpenter"), "sigs.k8s.io/karpenter/kwok", karpenter); err != nil {
			return "", "", types, err
		}
	}
	if err := cluster.BuildProgram(ctx, root, "github.com/joinery-sdk/joinery/examples/operator", operator); err != nil {
		return "", "", types, err
	}
	module := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/karpenter")
	module.Dir = filepath.Join(root, "versus", "karpenter")
	folder, err := module.Output()
	if err != nil {
		return "", "", types, err
	}
	types.original, types.file = filepath.Join(strings.TrimSpace(string(folder)), "kwok", "cloudprovider", "instance_types.json"), filepath.Join(dir, "types.json")
	data, err := os.ReadFile(types.original)
	if err != nil {
		return "", "", types, err
	}
	var list []map[string]any
	if err := json.Unmarshal(data, &list); err != nil {
		return "", "", types, err
	}
	for _, t := range list {
		t["overhead"] = map[string]string{"cpu": "100m", "memory": "10Mi"} // kwok/cloudprovider/helpers.go of Karpenter
	}
	if data, err = json.Marshal(list); err != nil {
		return "", "", types, err
	}
	if types.list, err = kwok.Read(data); err != nil {
		return "", "", types, err
	}
	return karpenter, operator, types, os.WriteFile(types.file, data, 0o600)
}

// start starts a cluster in a folder, which must be new, and one side on it. What it returns ends
// both, and says what the side has used.
func start(ctx context.Context, s side, bin, dir string) (c *cluster.Cluster, api client.Client, cached client.Reader, end func() (cpu, memory float64), err error) {
	if c, err = cluster.Start(ctx, bin, dir); err != nil {
		return nil, nil, nil, nil, err
	}
	if err = crds.Install(c.Config); err == nil {
		api, err = client.New(c.Config, client.Options{Scheme: scheme.Scheme})
	}
	informers, problem := cache.New(c.Config, cache.Options{Scheme: scheme.Scheme})
	logs, another := os.Create(filepath.Join(dir, "side.log"))
	command := exec.CommandContext(ctx, s.command[0], s.command[1:]...)
	command.Env = append(append(os.Environ(), "KUBECONFIG="+c.Kubeconfig), s.env...)
	command.Stdout, command.Stderr = logs, logs
	if err = errors.Join(err, problem, another); err == nil {
		err = command.Start()
	}
	if err != nil {
		c.Stop()
		return nil, nil, nil, nil, err
	}
	go func() { _ = informers.Start(ctx) }()
	return c, api, informers, func() (cpu, memory float64) {
		cpu, memory = usage(command.Process.Pid)
		_ = command.Process.Kill()
		_ = command.Wait()
		c.Stop()
		return cpu, memory
	}, logs.Close()
}

// play plays the day with one side.
func play(ctx context.Context, s side, bin, dir string, types []instancetypes.InstanceType, scale float64, progress io.Writer) (result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, api, cached, end, err := start(ctx, s, bin, dir)
	if err != nil {
		return result{}, err
	}
	r, err := newDay(api, cached, types, scale, progress).play(ctx)
	if err == nil {
		_, r.Evictions, err = answered(ctx, c.Config)
	}
	r.Side = s.name
	if r.CPU, r.Memory = end(); err != nil {
		return result{}, fmt.Errorf("%w\n%s", err, dir)
	}
	return r, nil
}

// usage is what a process has used: seconds of CPU, and MiB of memory at most. It reads /proc;
// elsewhere it is zero.
func usage(pid int) (cpu, memory float64) {
	if data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		if _, rest, ok := strings.Cut(string(data), ") "); ok {
			fields := strings.Fields(rest)
			var user, system float64
			_, _ = fmt.Sscan(fields[11], &user)
			_, _ = fmt.Sscan(fields[12], &system)
			cpu = (user + system) / 100 // ticks of USER_HZ
		}
	}
	if data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)); err == nil {
		if _, rest, ok := strings.Cut(string(data), "VmHWM:"); ok {
			_, _ = fmt.Sscan(rest, &memory)
			memory /= 1024
		}
	}
	return cpu, memory
}

var page = template.Must(template.New("").Parse(`Written by ` + "`make versus-cluster`" + ` on {{.Date}}, on {{.Cores}} cores{{.Load}}. Both run alone on a cluster of their own, as a
process of their own, and play the same day: {{.Pods}} pods of five deployments, one of them spread over zones; churn; one in ten left; none.
Both sell the catalogue of Karpenter's KWOK provider, on-demand and spot, with machines that are there at once. Both have their
defaults: batches of 1 to 10 seconds, a look at disruption every 10 seconds, a second look after 15; pools consolidate whatever is
empty or underused, at once, without a budget.

| |{{range .Results}} {{.Side}} |{{end}}
| --- |{{range .Results}} --: |{{end}}
{{range $i, $s := (index .Results 0).Steps}}| {{$s.Name}}: seconds until all pods are bound |{{range $.Results}} {{printf "%.1f" (index .Steps $i).Seconds}} |{{end}}
| nodes |{{range $.Results}} {{(index .Steps $i).Nodes}} |{{end}}
| dollars an hour |{{range $.Results}} {{printf "%.3f" (index .Steps $i).Price}} |{{end}}
| dollars an hour, {{$.Rest}} later |{{range $.Results}} {{printf "%.3f" (index .Steps $i).Rest}} |{{end}}
{{end}}| seconds until nothing is left |{{range .Results}} {{printf "%.1f" .Gone}} |{{end}}
| dollars for the day |{{range .Results}} {{printf "%.4f" .Dollars}} |{{end}}
| evictions |{{range .Results}} {{printf "%.0f" .Evictions}} |{{end}}
| seconds of CPU |{{range .Results}} {{printf "%.1f" .CPU}} |{{end}}
| MiB of memory at most |{{range .Results}} {{printf "%.0f" .Memory}} |{{end}}
`))

func write(path string, results []result) error {
	var b strings.Builder
	err := page.Execute(&b, map[string]any{
		"Date": time.Now().Format(time.DateOnly), "Cores": runtime.NumCPU(), "Load": load(), "Pods": results[0].Pods, "Rest": respite, "Results": results,
	})
	if err != nil {
		return err
	}
	return section(path, "A day", b.String())
}

// section puts a text into the file under a heading, in place of what was there.
func section(path, heading, text string) error {
	old, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	parts := strings.Split(strings.TrimSpace(string(old)), "\n\n## ")
	parts[0] = "# The operator and Karpenter, side by side"
	text = heading + "\n\n" + strings.TrimSpace(text)
	if i := slices.IndexFunc(parts, func(p string) bool { return strings.HasPrefix(p, heading+"\n") }); i >= 0 {
		parts[i] = text
	} else {
		parts = append(parts, text)
	}
	return os.WriteFile(path, []byte(strings.Join(parts, "\n\n## ")+"\n"), 0o644)
}
