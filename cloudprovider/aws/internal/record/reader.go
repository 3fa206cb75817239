package record

// KeyFleet is the tag by which EC2 itself names a machine's fleet: it cannot be taken off.
const KeyFleet = "aws:ec2:fleet-id"

// Reader reads each batch's record once for all of its machines: they carry copies of it, which never change. So a machine whose tags were
// taken off or spoiled is known by another one of its batch or fleet. It is for one goroutine; make one by [NewReader].
type Reader struct {
	batches, fleets map[string]Batch // by their ids
	seals           map[string]Seal  // by [Batch.Key]
}

// NewReader has read all that these machines carry; the tags of each are given.
func NewReader(machines ...map[string]string) *Reader {
	r := &Reader{batches: map[string]Batch{}, fleets: map[string]Batch{}, seals: map[string]Seal{}}
	for _, tags := range machines {
		id := tags[KeyBatch]
		b, ours := r.batches[id]
		if !ours {
			var err error
			if b, ours, err = Read(tags); !ours || err != nil {
				continue
			}
		}
		if id != "" {
			r.batches[id] = b
		}
		if fleet := tags[KeyFleet]; fleet != "" && (id != "" || r.fleets[fleet].Claims == nil) {
			r.fleets[fleet] = b
		}
		if _, known := r.seals[b.Key(tags)]; !known {
			if s, sealed, err := ReadSeal(tags); sealed && err == nil {
				r.seals[b.Key(tags)] = s
			}
		}
	}
	return r
}

// Batch is like [Read], and knows what others of the batch or fleet carry.
func (r *Reader) Batch(tags map[string]string) (Batch, bool, error) {
	if b, ok := r.batches[tags[KeyBatch]]; ok {
		return b, true, nil
	}
	if b, ok := r.fleets[tags[KeyFleet]]; ok {
		return b, true, nil
	}
	return Read(tags)
}

// Seal is like [ReadSeal], for a machine of the batch.
func (r *Reader) Seal(b Batch, tags map[string]string) (Seal, bool, error) {
	if s, ok := r.seals[b.Key(tags)]; ok {
		return s, true, nil
	}
	return ReadSeal(tags)
}
