package availability

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
)

// Ledger is what is known to be unavailable. It is an immutable value, safe for concurrent use. The
// zero value knows of nothing and follows the default policy. The methods that change it return a
// new ledger and cost O(n log n) in the number of records. Records that no longer matter are
// forgotten.
type Ledger struct {
	policy  Policy
	records []Record // in the order of compareRecords, with unique keys
}

// New returns an empty ledger with the given policy. It panics if the policy is invalid; see
// [Policy.Validate].
func New(policy Policy) Ledger {
	if err := policy.Validate(); err != nil {
		panic("availability: " + err.Error())
	}
	return Ledger{policy: policy}
}

// From returns a ledger with the given records, such as those that Records returned before a
// restart. Their order does not matter. The error joins one *cloudprovider.InvalidError for each
// fault of the policy and of the records.
func From(policy Policy, records []Record) (Ledger, error) {
	var errs []error
	if err := policy.Validate(); err != nil {
		errs = append(errs, err)
	}
	byKey := map[string]int{}
	for i, r := range records {
		if err := r.validate(i); err != nil {
			errs = append(errs, err)
			continue
		}
		if first, ok := byKey[r.key()]; ok {
			errs = append(errs, &cloudprovider.InvalidError{Path: fmt.Sprintf("records[%d]", i), Detail: fmt.Sprintf("it has the same subject as records[%d]", first)})
			continue
		}
		byKey[r.key()] = i
	}
	if err := errors.Join(errs...); err != nil {
		return Ledger{}, err
	}
	sorted := slices.Clone(records)
	slices.SortFunc(sorted, compareRecords)
	return Ledger{policy: policy, records: sorted}, nil
}

// Records returns everything that is remembered: offerings first, then families, zones and quotas,
// each of these sorted by name and place. The slice is new.
func (l Ledger) Records() []Record { return slices.Clone(l.records) }

// Active returns the records that withhold something now, in the order of Records.
func (l Ledger) Active(now time.Time) []Record {
	return slices.DeleteFunc(l.Records(), func(r Record) bool { return !r.Active(now) })
}

// Next returns the first moment after now at which something is no longer withheld, so that
// planning again may help. It returns false if nothing is withheld.
func (l Ledger) Next(now time.Time) (time.Time, bool) {
	var next time.Time
	for _, r := range l.records {
		if r.Active(now) && (next.IsZero() || r.Until.Before(next)) {
			next = r.Until
		}
	}
	return next, !next.IsZero()
}

// Learn records what the error of a Create says about capacity and quotas. An error without such
// detail changes nothing.
func (l Ledger) Learn(err error, now time.Time) Ledger {
	var detail *cloudprovider.Error
	if !errors.As(err, &detail) {
		return l
	}
	return l.Refuse(now, detail.Refused...).Exceed(now, detail.Quotas...)
}

// Launched records what a successful Create says: which candidates were refused before, and that
// there was capacity for what was launched. It forgets every record that withholds that offering,
// its family, its zone, or a quota that the new node counts towards, because the launch disproves
// the record. Records that this answer itself has made are kept.
func (l Ledger) Launched(launch cloudprovider.Launch, now time.Time) Ledger {
	t := instancetypes.InstanceType{Name: launch.Type, Requirements: requirements.FromLabels(launch.Labels)}
	o := instancetypes.Offering{Requirements: launch.Offering}
	kept := slices.DeleteFunc(l.Records(), func(r Record) bool { return r.Covers(t, o) })
	return Ledger{l.policy, kept}.Refuse(now, launch.Refused...).Exceed(now, launch.Quotas...)
}

// Refuse records refusals for lack of capacity. A refusal of an offering that is already withheld
// does not count, because the request was made before that was known.
func (l Ledger) Refuse(now time.Time, refused ...cloudprovider.Refusal) Ledger {
	if len(refused) == 0 {
		return l
	}
	policy := l.policy.WithDefaults()
	e := l.edit(policy, now)
	for _, r := range refused {
		if e.strike(Record{Scope: OfOffering, Name: r.Type, Where: r.Offering, Detail: r.Detail}, policy.First) {
			e.widen(Family(r.Type), place(r.Offering))
		}
	}
	return e.ledger()
}

// Exceed records refusals by quotas. A refusal by a quota that is already withheld does not count.
func (l Ledger) Exceed(now time.Time, quotas ...cloudprovider.Quota) Ledger {
	if len(quotas) == 0 {
		return l
	}
	policy := l.policy.WithDefaults()
	e := l.edit(policy, now)
	for _, q := range quotas {
		detail := ""
		if q.Used != 0 || q.Limit != 0 {
			detail = fmt.Sprintf("%d of %d used", q.Used, q.Limit)
		}
		e.strike(Record{Scope: OfQuota, Name: q.Name, Where: q.Blocks, Detail: detail}, policy.Quota)
	}
	return e.ledger()
}

// Free forgets the quotas with these names. Call it when something that counted towards them was
// given back, or when a limit was raised.
func (l Ledger) Free(quotas ...string) Ledger {
	return Ledger{l.policy, slices.DeleteFunc(l.Records(), func(r Record) bool {
		return r.Scope == OfQuota && slices.Contains(quotas, r.Name)
	})}
}

// Apply returns the types with every offering that is withheld now marked unavailable. It never
// marks an offering available. It also sets Full to false: a machine of a withheld offering that is
// given back cannot be bought again. The slice is new; types that do not change share their
// offerings with the argument. The cost is O(offerings x active records).
func (l Ledger) Apply(types []instancetypes.InstanceType, now time.Time) []instancetypes.InstanceType {
	active := l.Active(now)
	out := slices.Clone(types)
	for i, t := range out {
		var offerings []instancetypes.Offering
		for j, o := range t.Offerings {
			if !o.Available && !o.Full || !slices.ContainsFunc(active, func(r Record) bool { return r.Covers(t, o) }) {
				continue
			}
			if offerings == nil {
				offerings = slices.Clone(t.Offerings)
			}
			offerings[j].Available, offerings[j].Full = false, false
		}
		if offerings != nil {
			out[i].Offerings = offerings
		}
	}
	return out
}

// Why returns the active records that withhold an offering, or none if it may be tried.
func (l Ledger) Why(t instancetypes.InstanceType, o instancetypes.Offering, now time.Time) []Record {
	return slices.DeleteFunc(l.Active(now), func(r Record) bool { return !r.Covers(t, o) })
}

// editor is a ledger that is being changed.
type editor struct {
	policy Policy
	asked  Policy // as the caller gave it
	now    time.Time
	byKey  map[string]Record
}

// edit starts with the records that are still remembered.
func (l Ledger) edit(policy Policy, now time.Time) editor {
	e := editor{policy: policy, asked: l.policy, now: now, byKey: make(map[string]Record, len(l.records))}
	for _, r := range l.records {
		if now.Before(r.Until.Add(policy.Memory)) {
			e.byKey[r.key()] = r
		}
	}
	return e
}

func (e editor) ledger() Ledger {
	return Ledger{e.asked, slices.SortedFunc(maps.Values(e.byKey), compareRecords)}
}

// strike counts one more refusal and reports whether it did.
func (e editor) strike(r Record, first time.Duration) bool {
	old := e.byKey[r.key()]
	if old.Active(e.now) {
		return false
	}
	r.Strikes, r.Since = min(old.Strikes, math.MaxInt32)+1, e.now
	r.Until = e.now.Add(e.policy.hold(first, r.Strikes))
	e.byKey[r.key()] = r
	return true
}

// widen withholds the family at a place once enough of its types are withheld there. It withholds
// the place once enough families are. A family or place that was withheld as a whole recently is
// withheld again at the first refusal.
func (e editor) widen(family string, at requirements.Set) {
	types, families := map[string]bool{}, map[string]bool{}
	count := func() {
		for _, r := range e.byKey {
			switch {
			case !r.Active(e.now) || !place(r.Where).Equal(at):
			case r.Scope == OfFamily:
				families[r.Name] = true
			case r.Scope == OfOffering && Family(r.Name) == family:
				types[r.Name] = true
			}
		}
	}
	count()
	r := Record{Scope: OfFamily, Name: family, Where: at, Detail: fmt.Sprintf("types refused: %d", len(types))}
	if n := e.policy.FamilyTypes; n > 0 && (len(types) >= n || e.remembers(r)) && e.strike(r, e.policy.First) {
		count()
	}
	r = Record{Scope: OfZone, Where: at, Detail: fmt.Sprintf("families refused: %d", len(families))}
	if n := e.policy.ZoneFamilies; n > 0 && (len(families) >= n || e.remembers(r)) {
		e.strike(r, e.policy.First)
	}
}

func (e editor) remembers(r Record) bool { return e.byKey[r.key()].Strikes > 0 }
