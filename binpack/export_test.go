package binpack

// CoverageDuals opens the linear programme to its test against another solver.
func CoverageDuals(rows [][]float64, prices, demand []float64) []float64 {
	return coverageDuals(rows, prices, demand)
}
