package manifests

// CutItems is how many items a document is cut into by the look of its lines; 0 means that it is read as a whole.
func CutItems(data []byte) int {
	r := reader{}
	jobs := r.jobs(chunk{Position{"x", 1, 1}, data}, 0)
	if !jobs[0].part {
		return 0
	}
	return len(jobs)
}
