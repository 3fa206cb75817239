package ruletest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/kwok"
	"github.com/joinery-sdk/joinery/scheduling"
)

// Scenario is what a test plans: a cluster, what may be bought for it, and pods. It is a value:
// every method returns a new one and does not change its receiver, so tests can share a base and
// add to it. Planning reports everything that is wrong with it at once. The zero value is an empty
// cluster that buys from EC2 in us-east-1.
type Scenario struct {
	files       []manifests.File
	types       []json.RawMessage
	region      string
	constraints []scheduling.Constraint
	ignoreSoft  bool
	softPrice   *float64
	now         time.Time
	errs        []error
}

// Object is something that a scenario can contain: a [Workload], a [NodePool], a [Node] or an
// [InstanceType].
type Object interface {
	// manifest returns the object as JSON. ours says that it is an entry of the test's catalogue,
	// and not an object of a cluster.
	manifest() (text json.RawMessage, ours bool, err error)
}

// New returns a scenario with the given objects.
func New(objects ...Object) Scenario { return Scenario{}.Add(objects...) }

// Add adds objects. If there is an [InstanceType] among them, pools buy from the added types and no
// longer from EC2.
func (s Scenario) Add(objects ...Object) Scenario {
	s.files, s.types, s.errs = slices.Clone(s.files), slices.Clone(s.types), slices.Clone(s.errs)
	for i, o := range objects {
		if o == nil {
			s.errs = append(s.errs, fmt.Errorf("ruletest: object %d of Add is nil; leave it out", i))
			continue
		}
		text, ours, err := o.manifest()
		switch {
		case err != nil:
			s.errs = append(s.errs, err)
		case ours:
			s.types = append(s.types, text)
		default:
			s.files = append(s.files, manifests.File{Name: "object", Data: text})
		}
	}
	return s
}

// Manifests adds the objects of a YAML or JSON text, which may have many documents.
func (s Scenario) Manifests(text string) Scenario {
	s.files = append(slices.Clone(s.files), manifests.File{Name: "manifests", Data: []byte(text)})
	return s
}

// Files adds the objects of YAML or JSON files. Of a directory it reads what [Scenario.FS] reads.
func (s Scenario) Files(names ...string) Scenario {
	s.files, s.errs = slices.Clone(s.files), slices.Clone(s.errs)
	for _, name := range names {
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			before, errs := len(s.files), len(s.errs)
			s = s.FS(os.DirFS(name), ".")
			if len(s.files) == before && len(s.errs) == errs {
				s.errs = append(s.errs, fmt.Errorf("ruletest: %s: no file below it ends in .yaml, .yml or .json", name))
			}
			for i := range s.files[before:] {
				s.files[before+i].Name = filepath.Join(name, s.files[before+i].Name)
			}
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			s.errs = append(s.errs, fmt.Errorf("ruletest: %w", err))
			continue
		}
		s.files = append(s.files, manifests.File{Name: name, Data: data})
	}
	return s
}

// FS adds the manifests of a file system: the files that match the patterns of [fs.Glob]. Of a
// directory it reads the *.yaml, *.yml and *.json files at any depth, and skips those without a
// Kubernetes object. A pattern that matches nothing is an error.
func (s Scenario) FS(fsys fs.FS, patterns ...string) Scenario {
	s.files, s.errs = slices.Clone(s.files), slices.Clone(s.errs)
	if fsys == nil {
		s.errs = append(s.errs, errors.New("ruletest: FS needs a file system"))
		return s
	}
	read := func(name string, found bool) {
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			s.errs = append(s.errs, fmt.Errorf("ruletest: %w", err))
		}
		s.files = append(s.files, manifests.File{Name: name, Data: data, Found: found})
	}
	for _, pattern := range patterns {
		names, err := fs.Glob(fsys, pattern)
		if err == nil && len(names) == 0 {
			err = fs.ErrNotExist
		}
		if err != nil {
			s.errs = append(s.errs, fmt.Errorf("ruletest: %s: %w", pattern, err))
		}
		for _, name := range names {
			err := fs.WalkDir(fsys, name, func(at string, d fs.DirEntry, err error) error {
				switch {
				case err != nil || d.IsDir():
				case at == name:
					read(at, false)
				case slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(at)):
					read(at, true)
				}
				return err
			})
			if err != nil {
				s.errs = append(s.errs, fmt.Errorf("ruletest: %w", err))
			}
		}
	}
	return s
}

// Region sets the region of the embedded EC2 catalogue from which pools buy.
func (s Scenario) Region(name string) Scenario {
	s.region = name
	return s
}

// Types lets pools buy from these types and no longer from EC2. They are converted as package kwok
// writes them.
func (s Scenario) Types(types ...instancetypes.InstanceType) Scenario {
	s.types, s.errs = slices.Clone(s.types), slices.Clone(s.errs)
	data, err := kwok.Write(types)
	var list []json.RawMessage
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil {
		s.errs = append(s.errs, fmt.Errorf("ruletest: types: %w", err))
	}
	s.types = append(s.types, list...)
	return s
}

// Constrain adds the caller's own constraints to those of the pods' manifests.
func (s Scenario) Constrain(constraints ...scheduling.Constraint) Scenario {
	s.constraints = append(slices.Clone(s.constraints), constraints...)
	return s
}

// IgnorePreferences plans without soft constraints.
func (s Scenario) IgnorePreferences() Scenario {
	s.ignoreSoft = true
	return s
}

// PreferencePrice plans with this [scheduling.Options.PreferencePrice].
func (s Scenario) PreferencePrice(share float64) Scenario {
	s.softPrice = &share
	return s
}

// At sets the moment for durations of do-not-disrupt annotations and ages of nodes, for rules about
// [RulesCost]. The default is now.
func (s Scenario) At(now time.Time) Scenario {
	s.now = now
	return s
}

// Solve plans the scenario. The error joins everything that is wrong with it.
func (s Scenario) Solve() (*Plan, error) {
	m, err := manifests.Parse(named(s.files), &manifests.Options{Classes: pipeline.NodeClassDecoders()})
	if err := errors.Join(append(slices.Clone(s.errs), err)...); err != nil {
		return nil, err
	}
	market, err := s.market()
	if err != nil {
		return nil, err
	}
	snapshot, _, err := pipeline.Snapshot(m, market)
	if err != nil {
		return nil, err
	}
	snapshot, _ = pipeline.Static(snapshot)
	packing := &binpack.Options{}
	packed, err := plan.Make(context.Background(), snapshot, &plan.Options{Scheduling: &scheduling.Options{
		IgnorePreferences: s.ignoreSoft, PreferencePrice: s.softPrice, Constraints: s.constraints,
	}, Packing: packing, Groups: pipeline.Groups(m, snapshot.Pods)})
	if err != nil {
		return nil, err
	}
	now := s.now
	if now.IsZero() {
		now = time.Now()
	}
	return NewPlan(packed, packing).Guarded(simulate.ObjectsOf(m), now), nil
}

// Plan is [Scenario.Solve] for a test. If there is no plan, it ends the test.
func (s Scenario) Plan(tb TB) *Plan {
	tb.Helper()
	p, err := s.Solve()
	if err != nil {
		tb.Fatalf("ruletest: the scenario cannot be planned:\n%v", err)
		return nil
	}
	p.tb = tb
	return p
}

// named numbers the files without a name, so that problems can tell them apart.
func named(files []manifests.File) []manifests.File {
	out := slices.Clone(files)
	count := map[string]int{}
	for i, f := range out {
		if f.Name == "object" || f.Name == "manifests" {
			count[f.Name]++
			out[i].Name = fmt.Sprintf("%s %d", f.Name, count[f.Name])
		}
	}
	return out
}

func (s Scenario) market() (*pipeline.Market, error) {
	if len(s.types) == 0 {
		region := s.region
		if region == "" {
			region = "us-east-1"
		}
		return pipeline.EC2Market(region)
	}
	data, err := json.Marshal(s.types)
	if err != nil {
		return nil, fmt.Errorf("ruletest: types: %w", err)
	}
	return pipeline.KWOKMarket("ruletest", data)
}
