package ruletest

// Glob is the matching of patterns, for its fuzz target.
func Glob(pattern, text string) bool { return glob(pattern, text) }

// PlansAgain is how many plans were made for explanations, and how many may be.
func (p *Plan) PlansAgain() (made, most int) {
	size := p.planSize()
	return p.spent / size, max(8, 15_000/size)
}
