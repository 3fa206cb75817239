package inputs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
)

func TestEnd(t *testing.T) {
	var out bytes.Buffer
	assert.Equal(t, inputs.ExitOK, inputs.End(&out, nil))
	assert.Equal(t, inputs.ExitNotAll, inputs.End(&out, &inputs.ExitError{Code: inputs.ExitNotAll}))
	assert.Empty(t, out.String(), "the answer has been printed already")
	assert.Equal(t, inputs.ExitInput, inputs.End(&out, fmt.Errorf("wrapped: %w", inputs.Bad(errors.New("no such file")))))
	assert.Equal(t, "no such file\n", out.String())
	out.Reset()
	assert.Equal(t, inputs.ExitInternal, inputs.End(&out, errors.New("surprise")))
	assert.Equal(t, "surprise\n", out.String())
}

func TestFlags(t *testing.T) {
	var f inputs.Flags
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.Register(set)
	require.NoError(t, set.Parse([]string{"-f", "a.yaml", "-f", "b", "-o", "jsn"}))
	assert.Equal(t, []string{"a.yaml", "b"}, f.Files)
	assert.ErrorContains(t, f.Check(), `did you mean "json"?`)
	f.Output = "json"
	require.NoError(t, f.Check())
	f.InstanceTypes, f.Describe = "x", "y"
	require.Error(t, f.Check())
}

func TestMarkets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "types.json")
	catalogue := `[{"name":"a.4","architecture":"amd64","operatingSystems":["linux"],"resources":{"cpu":"4","memory":"8Gi","pods":"20"},
	  "offerings":[{"Price":0.1,"Available":true,"Requirements":[{"key":"topology.kubernetes.io/zone","operator":"In","values":["z"]}]}]}]`
	require.NoError(t, os.WriteFile(path, []byte("\xef\xbb\xbf"+catalogue), 0o600))
	m, err := (&inputs.Flags{InstanceTypes: path}).Market(nil)
	require.NoError(t, err, "a byte order mark is no mistake")
	assert.Equal(t, 1, m.Len())
	assert.Equal(t, "types.json", m.List)
	m, err = (&inputs.Flags{Region: "eu-west-1"}).Market(nil)
	require.NoError(t, err)
	assert.Greater(t, m.Len(), 500)
	assert.NotEmpty(t, m.Date)
	_, err = (&inputs.Flags{Region: "eu-wset-1"}).Market(nil)
	assert.Equal(t, inputs.ExitInput, inputs.End(&bytes.Buffer{}, err))
	_, err = (&inputs.Flags{InstanceTypes: path + "x"}).Market(nil)
	assert.ErrorContains(t, err, "--instance-types")
}

func TestManifests(t *testing.T) {
	const podYAML = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n"
	m, err := (&inputs.Flags{}).Manifests(podYAML, nil)
	require.NoError(t, err)
	assert.Len(t, m.Pods, 1, "without -f it is the sample")
	m, err = (&inputs.Flags{Files: []string{"-"}}).Manifests("", strings.NewReader(podYAML))
	require.NoError(t, err)
	assert.Len(t, m.Pods, 1)
	_, err = (&inputs.Flags{Files: []string{"-"}}).Manifests("", strings.NewReader("kind: Pod"))
	assert.Equal(t, inputs.ExitInput, inputs.End(&bytes.Buffer{}, err))
}

// What is piped in and not read is an error, and never replaced by the sample in silence.
func TestStdinThatNobodyReads(t *testing.T) {
	pipe := func(text string, end bool) *os.File {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		t.Cleanup(func() { _, _ = r.Close(), w.Close() })
		_, err = w.WriteString(text)
		require.NoError(t, err)
		if end {
			require.NoError(t, w.Close())
		}
		return r
	}
	file := func(text string) *os.File {
		path := filepath.Join(t.TempDir(), "pods.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		f, err := os.Open(path)
		require.NoError(t, err)
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	t.Cleanup(func() { _ = null.Close() })
	for name, c := range map[string]struct {
		stdin io.Reader
		bad   bool
	}{
		"nothing":               {nil, false},
		"an empty reader":       {strings.NewReader(""), false},
		"a reader":              {strings.NewReader("kind: Pod"), true},
		"the null device":       {null, false},
		"a pipe":                {pipe("kind: Pod", true), true},
		"a pipe that ended":     {pipe("", true), false},
		"a pipe that is silent": {pipe("", false), true},
		"a file":                {file("kind: Pod"), true},
		"an empty file":         {file(""), false},
	} {
		t.Run(name, func(t *testing.T) {
			var f inputs.Flags
			err := f.CheckStdin(c.stdin)
			assert.Equal(t, c.bad, err != nil)
			if c.bad {
				assert.ErrorContains(t, err, "-f -")
			}
			f.Files = []string{"-"}
			assert.NoError(t, f.CheckStdin(c.stdin))
			assert.Empty(t, f.Sample())
		})
	}
}

func ExampleBad() {
	fmt.Println(inputs.End(os.Stdout, inputs.Bad(errors.New("--region: no such region"))))
	// Output:
	// --region: no such region
	// 2
}

func TestInterruptionRates(t *testing.T) {
	read := func(text string) (*inputs.Objective, error) {
		path := filepath.Join(t.TempDir(), "rates.csv")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		var o inputs.Objective
		set := pflag.NewFlagSet("test", pflag.ContinueOnError)
		o.Register(set)
		require.NoError(t, set.Parse([]string{"--interruption-rates", path, "--interruption-cost", "2"}))
		_, err := o.Parse()
		return &o, err
	}
	o, err := read("# type, zone, rate\nm5.large, a, 0.1\nm5.large, , 0.2\n, b, 0.3\n, , 0.4\n")
	require.NoError(t, err)
	objective, err := o.Parse()
	require.NoError(t, err)
	for _, c := range []struct {
		typ, zone string
		want      float64
	}{{"m5.large", "a", 0.1}, {"m5.large", "b", 0.2}, {"c5.large", "b", 0.3}, {"c5.large", "a", 0.4}} {
		rate, known := objective.Interruptions.PerHour(c.typ, c.zone)
		assert.True(t, known)
		assert.InDelta(t, c.want, rate, 0, "%s in %s: the most particular line holds", c.typ, c.zone)
	}
	_, err = read("m5.large,a,-1\nm5.large,a,often\nm5.large,b,1\nm5.large,b,1\n")
	for _, want := range []string{`rates.csv:1: rate "-1": want interruptions an hour`, `rates.csv:2: rate "often"`, `rates.csv:4: type "m5.large" in zone "b" already has a rate`} {
		assert.ErrorContains(t, err, want)
	}
	_, err = read("m5.large\n")
	assert.ErrorContains(t, err, "want lines of INSTANCE-TYPE,ZONE,RATE")
	var lonely inputs.Objective
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	lonely.Register(set)
	require.NoError(t, set.Parse([]string{"--interruption-cost", "2"}))
	_, err = lonely.Parse()
	assert.ErrorContains(t, err, "want --interruption-rates, too")
}

// The default spread of a scheduler's configuration reaches the pods; what is wrong with the file is said with its path.
func TestSchedulerConfig(t *testing.T) {
	const pods = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}}
---
apiVersion: v1
kind: Pod
metadata: {name: web-0, labels: {app: web}}
spec: {containers: [{name: main, image: web}]}
---
apiVersion: v1
kind: Pod
metadata: {name: alone}
spec: {containers: [{name: main, image: web}]}
`
	file := filepath.Join(t.TempDir(), "scheduler.yaml")
	plan := func(config string) ([]string, []string, error) {
		require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
		f := inputs.Flags{SchedulerConfig: file}
		m, err := f.Manifests(pods, nil)
		if err != nil {
			return nil, nil, err
		}
		market, err := f.Market(m)
		require.NoError(t, err)
		s, notes, err := pipeline.Snapshot(m, market)
		require.NoError(t, err)
		var spread []string
		for _, p := range s.Pods {
			for _, c := range p.Spec.TopologySpreadConstraints {
				spread = append(spread, p.Name+" "+c.TopologyKey)
			}
		}
		return spread, notes, nil
	}
	spread, notes, err := plan("podTopologySpread: {defaultConstraints: [{maxSkew: 1, topologyKey: rack, whenUnsatisfiable: DoNotSchedule}]}")
	require.NoError(t, err)
	assert.Equal(t, []string{"web-0 rack"}, spread)
	assert.Contains(t, strings.Join(notes, "\n"), "1 of 2 pods have the default topology spread")
	spread, _, err = plan("{}")
	require.NoError(t, err)
	assert.Empty(t, spread)
	for config, want := range map[string]string{
		"podTopologySpread: {defaultConstraints: [{maxSkew: 0, topologyKey: rack, whenUnsatisfiable: DoNotSchedule}]}": "maxSkew is 0",
		"a: [": "did not find expected node content",
	} {
		_, _, err = plan(config)
		assert.ErrorContains(t, err, want)
		assert.ErrorContains(t, err, file)
	}
}

// Headroom for a workload that is not there is an error with what was probably meant: the plan would be one without it.
func TestHeadroomForNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "all.yaml")
	var text strings.Builder
	for _, of := range []string{"{namespace: shop, name: web}", "{namespace: shop, name: api}", "{namespace: lab, name: train}"} {
		fmt.Fprintf(&text, "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: %s\nspec: {replicas: 5, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}}\n", of)
	}
	text.WriteString("---\napiVersion: autoscaling.x-k8s.io/v1beta1\nkind: CapacityBuffer\nmetadata: {namespace: shop, name: later}\nspec: {scalableRef: {kind: Deployment, name: soon}, replicas: 1}\n")
	require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
	read := func(headroom ...string) error {
		f := inputs.Flags{Files: []string{path}, Headroom: headroom, Buffers: true}
		_, err := f.Manifests("", nil)
		return err
	}
	require.NoError(t, read("shop/deployment/web=20%", "shop/deployment/api=1"), "a buffer of the manifests may wait for its workload")
	for asked, want := range map[string]string{
		"shop/deployment/wbe=20%":         `--headroom "shop/deployment/wbe=20%": there is no Deployment wbe in namespace shop; did you mean "web"?`,
		"shop/statefulset/web=1":          "there is no StatefulSet web in namespace shop; did you mean Deployment web in namespace shop?",
		"deployment/train=1":              "there is no Deployment train in namespace default; did you mean Deployment train in namespace lab?",
		"shop/deployment/other=1":         "there is no Deployment other in namespace shop",
		"shop/deployment/web=99999999999": "want [NAMESPACE/]KIND/NAME=PODS",
		"shop/deployment/web=2000000000":  "it has 2000000000 pods",
	} {
		err := read("shop/deployment/api=1", asked)
		require.ErrorContains(t, err, want)
		assert.Equal(t, inputs.ExitInput, inputs.End(&bytes.Buffer{}, err))
	}
}

// A price of preferences that cannot be meant is an error. It was read as the default.
func TestPreferencePrice(t *testing.T) {
	for text, ok := range map[string]bool{"0": true, "0.2": true, "inf": true, "-1": true, "-0.2": false, "-2": false, "nan": false, "-inf": false} {
		var p inputs.Planning
		cmd := &cobra.Command{}
		p.Register(cmd)
		require.NoError(t, cmd.Flags().Parse([]string{"--preference-price=" + text}))
		_, err := p.Options()
		assert.Equal(t, ok, err == nil, text)
		if !ok {
			require.ErrorContains(t, err, "--preference-price")
		}
	}
}

// The words and flags for help and version are the same in every program, and a value of the wrong type
// says what is wanted, not which function of Go refused it.
func TestWordsAndValues(t *testing.T) {
	program := func() *cobra.Command {
		c := inputs.Command(&cobra.Command{Use: "try"}, func(*cobra.Command, io.Writer) error { return nil })
		c.Flags().Float64("price", 0, "a price")
		c.Flags().Int("count", 0, "a count")
		c.Flags().Bool("wide", false, "wide")
		c.Flags().Duration("after", 0, "a time")
		return c
	}
	for _, args := range [][]string{{"help"}, {"version"}, {"--help"}, {"--version"}} {
		var out bytes.Buffer
		c := program()
		c.SetOut(&out)
		c.SetArgs(args)
		require.NoError(t, c.Execute(), args)
		require.Contains(t, out.String(), "try", args)
	}
	for args, want := range map[string]string{
		"--price=abc": `--price "abc": want a number (see try --help)`, "--count=1.5": `--count "1.5": want a whole number`,
		"--wide=perhaps": `--wide "perhaps": want true or false`, "--after=soon": `--after "soon": want a duration, such as 90s or 1h30m`, "versoin": "want only flags",
	} {
		c := program()
		c.SetArgs([]string{args})
		err := c.Execute()
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "strconv")
	}
}
