package record

// KeyFleet is the tag in which EC2 itself names a machine's fleet. Nobody can remove it.
const KeyFleet = "aws:ec2:fleet-id"

// Reader reads each batch's record once for all of its machines, which carry copies that never
// change. So if the tags of a machine were removed or damaged, another machine of its batch or
// fleet identifies it. It is for one goroutine. Make one with [NewReader].
type Reader struct {
	batches, fleets map[string]Batch // by their ids
	seals           map[string]Seal  // by [Batch.Key]
}

// NewReader returns a reader of everything that these machines carry, given the tags of each.
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

// Batch is like [Read], but also knows what other machines of the batch or fleet carry.
func (r *Reader) Batch(tags map[string]string) (Batch, bool, error) {
	if b, ok := r.batches[tags[KeyBatch]]; ok {
		return b, true, nil
	}
	if b, ok := r.fleets[tags[KeyFleet]]; ok {
		return b, true, nil
	}
	return Read(tags)
}

// Sealed records the seal of a batch, by its [Batch.Key], which its machines carry since they were
// read.
func (r *Reader) Sealed(key string, s Seal) { r.seals[key] = s }

// Seal is like [ReadSeal], for a machine of the batch.
func (r *Reader) Seal(b Batch, tags map[string]string) (Seal, bool, error) {
	if s, ok := r.seals[b.Key(tags)]; ok {
		return s, true, nil
	}
	return ReadSeal(tags)
}
