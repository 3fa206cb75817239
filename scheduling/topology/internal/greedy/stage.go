package greedy

import "github.com/joinery-sdk/joinery/requirements"

// stage is a [Stage] with what it names found.
type stage struct {
	*Stage
	number int   // of all stages
	asks   []int // numbers of the alternatives that it requires
	allow  [][]byte
	least  []least // by spread
}

// least is the fewest pods of a group over the values that a spread looks at, as long as the group's version is this one.
type least struct{ version, pods int }

// stages looks up what the stages of all classes ask: their alternatives, each once, get numbers.
func (p *Problem) stages() (of [][]stage, asks []requirements.Set) {
	at := map[string]int{}
	number := 0
	for i := range p.Classes {
		var list []stage
		for k := range p.Classes[i].Stages {
			st := stage{Stage: &p.Classes[i].Stages[k], number: number}
			number++
			for set := range st.Required.All() {
				key := string(set.AppendKey(nil))
				n, ok := at[key]
				if !ok {
					n = len(asks)
					at[key], asks = n, append(asks, set)
				}
				st.asks = append(st.asks, n)
			}
			st.least = make([]least, len(st.Spreads))
			for j := range st.least {
				st.least[j].version = -1
			}
			list = append(list, st)
		}
		of = append(of, list)
	}
	return of, asks
}

const (
	unknown = byte(iota)
	yes
	no
)

// allows reports whether a node with the value of a label is one that the pods ask for, whatever else they ask.
func (st *stage) allows(number int, l *label, value int) bool {
	for len(st.allow) <= number {
		st.allow = append(st.allow, nil)
	}
	for len(st.allow[number]) <= value {
		st.allow[number] = append(st.allow[number], unknown)
	}
	known := &st.allow[number][value]
	if *known == unknown {
		*known = no
		for set := range st.Asked.All() {
			if set.Get(l.name).Contains(l.values[value]) {
				*known = yes
				break
			}
		}
	}
	return *known == yes
}
