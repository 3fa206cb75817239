package relax

// CertifyCoverage proves a bound by resource duals.
func (m *Model) CertifyCoverage(b *Budget) (duals []float64, proof Proof) {
	return m.typeGroups().certify(b)
}

// FillGreedily packs everything by Greedy.
func (m *Model) FillGreedily(b *Budget) []Column { return m.Greedy(m.typeGroups(), b) }

// ForWholeBins returns duals that prove more with whole bins.
func (m *Model) ForWholeBins(duals []float64, b *Budget) []float64 { return m.forWholeBins(duals, b) }
