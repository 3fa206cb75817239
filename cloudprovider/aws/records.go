package aws

import "github.com/joinery-sdk/joinery/cloudprovider/aws/record"

// records reads each batch's record once for all of its machines: they carry copies of it, which never change. It is used within one call.
type records struct {
	batches map[string]record.Batch
	seals   map[string]record.Seal
}

func newRecords() *records {
	return &records{batches: map[string]record.Batch{}, seals: map[string]record.Seal{}}
}

func (r *records) batch(tags map[string]string) (record.Batch, bool, error) {
	if b, ok := r.batches[tags[record.KeyBatch]]; ok {
		return b, true, nil
	}
	b, ours, err := record.Read(tags)
	if ours && err == nil {
		r.batches[b.ID] = b
	}
	return b, ours, err
}

func (r *records) seal(tags map[string]string) (record.Seal, bool, error) {
	id := tags[record.KeyBatch]
	if s, ok := r.seals[id]; ok {
		return s, true, nil
	}
	s, sealed, err := record.ReadSeal(tags)
	if sealed && err == nil {
		r.seals[id] = s
	}
	return s, sealed, err
}
