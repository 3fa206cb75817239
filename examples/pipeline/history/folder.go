package history

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/scheduling/nodepool/nodeclaim"
)

// ReadFolder returns the history of the snapshots in a folder. Each is a file written by kubectl
// get -o yaml or -o json. The moment of a file is in its name, such as 2026-01-15T08-00-00Z.yaml,
// 20260115-080000.json or 1768464000.yaml. Otherwise it is the latest moment that its nodes and
// pods mention. The last snapshot is assumed to hold as long as the one before it, or for an hour
// if it is the only one. Pools, DaemonSets, volumes and budgets are those of the last snapshot. The
// error joins the problems of all files.
func ReadFolder(dir string, o *manifests.Options) (*History, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []manifests.File
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); e.IsDir() || ext != ".yaml" && ext != ".yml" && ext != ".json" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		files = append(files, manifests.File{Name: e.Name(), Data: data})
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no snapshot: want files that end in .yaml, .yml or .json", dir)
	}
	return ParseSnapshots(files, o)
}

// ParseSnapshots is [ReadFolder] for files in memory.
func ParseSnapshots(files []manifests.File, o *manifests.Options) (*History, error) {
	type snapshot struct {
		m  *manifests.Snapshot
		at time.Time
	}
	var list []snapshot
	var errs []error
	byObjects, notes := 0, map[string]bool{}
	for _, f := range files {
		m, err := manifests.Parse([]manifests.File{f}, o)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		at, ok := timeIn(f.Name)
		if !ok {
			if at = latest(m); at.IsZero() {
				errs = append(errs, fmt.Errorf("%s: neither the name nor an object says when it was taken", f.Name))
				continue
			}
			byObjects++
		}
		for _, n := range m.Notes {
			notes[n] = true
		}
		list = append(list, snapshot{m, at})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	slices.SortStableFunc(list, func(a, b snapshot) int { return a.at.Compare(b.at) })
	known := map[string]*corev1.Pod{}
	var out []Observation
	for _, s := range list {
		x := Observation{At: s.at, Nodes: launched(s.m), LastPodEvent: lastPodEvents(s.m.NodeClaims)}
		for p := range s.m.AllPods() {
			if eviction.Ended(p) {
				continue
			}
			key := fmt.Sprintf("%s %s %s %s", eviction.Name(p), p.UID, p.ResourceVersion, p.Spec.NodeName)
			if before := known[key]; before != nil && p.ResourceVersion != "" {
				p = before // share the object, so that it is examined only once
			}
			known[key] = p
			x.Pods = append(x.Pods, p)
		}
		out = append(out, x)
	}
	last := list[len(list)-1]
	length := time.Hour
	if len(list) > 1 {
		if d := last.at.Sub(list[len(list)-2].at); d > 0 {
			length = d
		}
	}
	var said []string
	for n := range notes {
		said = append(said, n)
	}
	slices.Sort(said)
	if byObjects > 0 {
		said = append(said, fmt.Sprintf("snapshots without a time in their names, dated by the latest time in them: %d", byObjects))
	}
	return New(last.m, out, last.at.Add(length), said...)
}

// launched returns the nodes, plus the machines that were launched and have not joined yet, which
// are paid for too.
func launched(m *manifests.Snapshot) []*corev1.Node {
	out, joined := slices.Clone(m.Nodes), map[string]bool{}
	for _, n := range m.Nodes {
		joined[n.Name], joined[n.Spec.ProviderID] = true, true
	}
	for i := range m.NodeClaims {
		if c := &m.NodeClaims[i]; c.ProviderID != "" && !joined[c.ProviderID] && !joined[c.NodeName] {
			claim := pipeline.NodeClaim(c)
			n := claim.Node()
			n.CreationTimestamp = c.Metadata.CreationTimestamp
			out = append(out, n)
		}
	}
	return out
}

func lastPodEvents(claims []nodeclaim.NodeClaim) map[string]time.Time {
	out := map[string]time.Time{}
	for i := range claims {
		if c := &claims[i]; !c.LastPodEvent.IsZero() {
			out[cmp.Or(c.NodeName, c.Name)] = c.LastPodEvent
		}
	}
	return out
}

// timeIn returns the moment in the name of a file, in UTC.
func timeIn(name string) (time.Time, bool) {
	base := strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
	const secondsOfUnix = 10 // digits, until the year 2286
	if n, err := strconv.ParseInt(base, 10, 64); err == nil && len(base) == secondsOfUnix {
		return time.Unix(n, 0).UTC(), true
	}
	m := regexp.MustCompile(`(\d{4})-?(\d\d)-?(\d\d)[T_.-]?(\d\d)[:-]?(\d\d)(?:[:-]?(\d\d))?`).FindStringSubmatch(base)
	if m == nil {
		return time.Time{}, false
	}
	t, err := time.Parse("20060102150405", m[1]+m[2]+m[3]+m[4]+m[5]+cmp.Or(m[6], "00"))
	return t, err == nil
}

// latest returns the latest moment that nodes and pods mention.
func latest(m *manifests.Snapshot) time.Time {
	var out time.Time
	later := func(t time.Time) {
		if t.After(out) {
			out = t.UTC()
		}
	}
	for _, n := range m.Nodes {
		later(n.CreationTimestamp.Time)
		for _, c := range n.Status.Conditions {
			later(c.LastHeartbeatTime.Time)
			later(c.LastTransitionTime.Time)
		}
	}
	for _, p := range m.Pods {
		later(p.CreationTimestamp.Time)
		for _, c := range p.Status.Conditions {
			later(c.LastTransitionTime.Time)
		}
	}
	return out
}
