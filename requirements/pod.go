package requirements

// Pod is what one pod asks of the labels of its node.
type Pod struct {
	// Required holds the OR-terms: the node must satisfy one of them. Each includes the pod's node
	// selector.
	Required Alternatives
	// Preferred holds the soft terms, heaviest first. Terms of equal weight keep the order of the
	// manifest.
	Preferred []Preference
}

// Preference is a soft term. A node that satisfies it scores Weight (1 to 100) more.
type Preference struct {
	Weight int32
	Nodes  Set
}
