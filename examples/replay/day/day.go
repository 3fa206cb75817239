// Package day describes what happens to a cluster in a day: deployments are created, scaled and
// deleted. A day is generated or read from a file. It has no nodes, so the same day can be played
// under any policy.
package day

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

// Event is a deployment that is made, scaled or, with 0 replicas, taken away.
type Event struct {
	At       time.Time `json:"at"`
	App      string    `json:"app"`
	Replicas int       `json:"replicas"`
	// CPU and Memory are what each pod asks for; they may be left out where the deployment is
	// known.
	CPU    string `json:"cpu,omitempty"`
	Memory string `json:"memory,omitempty"`
}

// Start is when generated days begin.
func Start() time.Time { return time.Date(2026, 1, 15, 0, 0, 0, 0, time.UTC) }

// Generate makes a day with the given number of deployments: services that follow the sun, and batch jobs that
// come and go.
func Generate(seed uint64, apps int) []Event {
	r := rand.New(rand.NewPCG(seed, 0x646179))
	cpus, memories := []string{"250m", "500m", "1", "2"}, []string{"512Mi", "1Gi", "2Gi", "4Gi", "8Gi"}
	var out []Event
	for a := range apps {
		name := fmt.Sprintf("app-%d", a)
		cpu, memory := cpus[r.IntN(len(cpus))], memories[r.IntN(len(memories))]
		if a%4 == 3 { // batch: a few runs, of an hour or two
			for range 2 + r.IntN(4) {
				at := Start().Add(time.Duration(r.IntN(22*60)) * time.Minute)
				out = append(out, Event{at, name, 5 + r.IntN(30), cpu, memory}, Event{at.Add(time.Duration(30+r.IntN(90)) * time.Minute), name, 0, cpu, memory})
			}
			continue
		}
		base, swing, peak := 2+r.IntN(4), 4+r.IntN(20), 10+4*r.Float64()
		last := -1
		for m := 0; m < 24*60; m += 10 {
			sun := math.Max(0, math.Cos((float64(m)/60-peak)/24*2*math.Pi))
			n := base + int(float64(swing)*sun+r.Float64())
			if n != last {
				out = append(out, Event{Start().Add(time.Duration(m) * time.Minute), name, n, cpu, memory})
				last = n
			}
		}
	}
	order(out)
	return out
}

func order(list []Event) {
	slices.SortStableFunc(list, func(a, b Event) int { return cmp.Or(a.At.Compare(b.At), strings.Compare(a.App, b.App)) })
}

// Read reads a recorded day: one event as JSON on each line. The name of the file is for the error,
// which joins all that is wrong.
func Read(name string, in io.Reader) ([]Event, error) {
	var out []Event
	var errs []error
	known := map[string]bool{}
	s := bufio.NewScanner(in)
	for line := 1; s.Scan(); line++ {
		text := strings.TrimSpace(s.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		bad := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("%s:%d: %s", name, line, fmt.Sprintf(format, args...)))
		}
		var e Event
		d := json.NewDecoder(strings.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(&e); err != nil {
			bad("%v", err)
			continue
		}
		switch {
		case e.App == "":
			bad("app: required")
		case e.At.IsZero():
			bad("at: required, such as 2026-01-15T08:00:00Z")
		case e.Replicas < 0 || e.Replicas > 10_000:
			bad("replicas: %d: want 0 to 10000", e.Replicas)
		case !known[e.App] && (e.CPU == "" || e.Memory == ""):
			bad("cpu, memory: required where app %q is first named", e.App)
		}
		for _, x := range [][2]string{{"cpu", e.CPU}, {"memory", e.Memory}} {
			field, q := x[0], x[1]
			if q == "" {
				continue
			}
			if v, err := resources.Parse(q); err != nil {
				bad("%s: %v", field, err)
			} else if v.Sign() < 0 {
				bad("%s: %q: must not be negative", field, q)
			}
		}
		known[e.App] = true
		out = append(out, e)
	}
	if err := errors.Join(append(errs, s.Err())...); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no events", name)
	}
	order(out)
	if span := out[len(out)-1].At.Sub(out[0].At); span > longest {
		return nil, fmt.Errorf("%s: it spans %s, at most %s can be replayed", name, span, longest)
	}
	return out, nil
}

// longest is the longest time that is replayed.
const longest = 31 * 24 * time.Hour
