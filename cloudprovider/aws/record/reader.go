package record

// Reader reads each batch's record once for all of its machines: they carry copies of it, which never change. It is for one goroutine;
// make one by [NewReader].
type Reader struct {
	batches map[string]Batch
	seals   map[string]Seal
}

// NewReader has read nothing yet.
func NewReader() *Reader {
	return &Reader{batches: map[string]Batch{}, seals: map[string]Seal{}}
}

// Batch is like [Read].
func (r *Reader) Batch(tags map[string]string) (Batch, bool, error) {
	if b, ok := r.batches[tags[KeyBatch]]; ok {
		return b, true, nil
	}
	b, ours, err := Read(tags)
	if ours && err == nil {
		r.batches[b.ID] = b
	}
	return b, ours, err
}

// Seal is like [ReadSeal].
func (r *Reader) Seal(tags map[string]string) (Seal, bool, error) {
	id := tags[KeyBatch]
	if s, ok := r.seals[id]; ok {
		return s, true, nil
	}
	s, sealed, err := ReadSeal(tags)
	if sealed && err == nil {
		r.seals[id] = s
	}
	return s, sealed, err
}
