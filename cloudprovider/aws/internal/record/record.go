// Package record is what the tags of instances say about the claims that they are for: the only
// memory that survives the provider.
//
// One fleet launches machines for several claims, and its tags are on all of them. So every machine
// carries the list of the batch's claims ([Batch]). Once the machines are known, it also carries a
// [Seal] that says which machine belongs to which claim: the i-th id of the seal belongs to the
// i-th claim.
//
// If the launcher was interrupted, a batch may never be sealed. Its machines are then given to the
// claims in the order of their ids. That is safe, because no caller learns of a machine before its
// batch is sealed. A batch of one claim needs no seal.
//
// EC2 accepts 50 tags of 256 characters, so a record is JSON, compressed, in base64, cut into
// pieces.
package record

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Keys of tags. The keys of records are followed by the number of the piece.
const (
	// KeyBatch names the batch; its value is the batch's id.
	KeyBatch  = "joinery/batch"
	keyClaims = "joinery/claims-"
	keySeal   = "joinery/seal-"
)

// The size limits of a tag, and of an unpacked record, to reject decompression bombs.
const (
	pieceSize   = 256
	recordLimit = 1 << 20
)

// Claim is one claim of a batch.
type Claim struct {
	Name  string `json:"n"`
	Token string `json:"t"`
	// Identity is the claim's hash if it differs from that of the batch.
	Identity string `json:"i,omitempty"`
}

// Batch is what all machines of one fleet have in common.
type Batch struct {
	// ID is unique. It is also the client token of the fleet's request.
	ID string `json:"-"`
	// Pool, NodeClass, Requirements and Labels are those of all the batch's claims.
	Pool         string            `json:"p,omitempty"`
	NodeClass    string            `json:"c,omitempty"`
	Requirements string            `json:"r,omitempty"`
	Labels       map[string]string `json:"l,omitempty"`
	// Identity is the [Identity] of the first claim. ClassHash is that of the node class's static
	// fields. Version is the version of both; 0 means 1.
	Identity  string `json:"s"`
	ClassHash string `json:"h,omitempty"`
	Version   int    `json:"v,omitempty"`
	// Created is when the fleet was first requested, in seconds since 1970.
	Created int64   `json:"at"`
	Claims  []Claim `json:"k"`
}

// Of returns the identity of the i-th claim, or an empty string if its version cannot be compared.
func (b Batch) Of(i int) string {
	if b.Version > Version {
		return ""
	}
	return cmp.Or(b.Claims[i].Identity, b.Identity)
}

// Key identifies the batch, given the tags of one of its machines: by its id, or by the fleet if
// the batch's name was removed.
func (b Batch) Key(tags map[string]string) string { return cmp.Or(b.ID, tags[KeyFleet]) }

// CreatedAt returns Created as a time.
func (b Batch) CreatedAt() time.Time { return time.Unix(b.Created, 0).UTC() }

// Tags returns the tags that record the batch.
func (b Batch) Tags() (map[string]string, error) {
	tags, err := pack(keyClaims, b)
	if err != nil {
		return nil, err
	}
	tags[KeyBatch] = b.ID
	return tags, nil
}

// Read returns the batch in the tags of an instance, or false if there is none. The error says that
// there is one that cannot be read.
func Read(tags map[string]string) (Batch, bool, error) {
	id, named := tags[KeyBatch]
	if _, ok := tags[keyClaims+"00"]; !ok && !named {
		return Batch{}, false, nil
	}
	var b Batch
	ok, err := unpack(tags, keyClaims, &b)
	if err == nil && !ok {
		err = errors.New("its list of claims is missing")
	}
	if err != nil {
		return Batch{}, true, fmt.Errorf("record: batch %q: %w", id, err)
	}
	b.ID = id
	if len(b.Claims) == 0 {
		return Batch{}, true, fmt.Errorf("record: batch %q has no claims", id)
	}
	return b, true, nil
}

// Seal says which machine belongs to which claim: the i-th id belongs to the batch's i-th claim.
// Later claims have none.
type Seal []string

// Tags returns the tags that record the seal.
func (s Seal) Tags() (map[string]string, error) {
	// All ids share a prefix, which is left out.
	short := make([]string, len(s))
	for i, id := range s {
		short[i] = strings.TrimPrefix(id, "i-")
	}
	return pack(keySeal, strings.Join(short, " "))
}

// ReadSeal returns the seal in the tags of an instance, or false if the batch was not sealed.
func ReadSeal(tags map[string]string) (Seal, bool, error) {
	var text string
	ok, err := unpack(tags, keySeal, &text)
	if err != nil || !ok {
		return nil, false, err
	}
	var s Seal
	for id := range strings.FieldsSeq(text) {
		s = append(s, "i-"+id)
	}
	return s, true, nil
}

// Assign gives machines to the claims of an unsealed batch in the order of their ids. The slice is
// new.
func Assign(ids []string) Seal {
	out := slices.Clone(ids)
	slices.Sort(out)
	return slices.Compact(out)
}

// pack writes a value into as many tags as it needs.
func pack(key string, value any) (map[string]string, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestCompression)
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	text := base64.RawURLEncoding.EncodeToString(b.Bytes())
	tags := map[string]string{}
	for i := 0; len(text) > 0; i++ {
		n := min(pieceSize, len(text))
		tags[fmt.Sprintf("%s%02d", key, i)] = text[:n]
		text = text[n:]
	}
	return tags, nil
}

// unpack reads what pack has written, or returns false if no tag has the key.
func unpack(tags map[string]string, key string, into any) (bool, error) {
	var b strings.Builder
	for i := range 50 {
		piece, ok := tags[fmt.Sprintf("%s%02d", key, i)]
		if !ok {
			break
		}
		b.WriteString(piece)
	}
	if b.Len() == 0 {
		return false, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(b.String())
	if err != nil {
		return true, errors.New("record: the tags are not base64")
	}
	r := flate.NewReader(bytes.NewReader(data))
	text, err := io.ReadAll(io.LimitReader(r, recordLimit))
	if err != nil {
		return true, errors.New("record: the tags are cut off")
	}
	if err := json.Unmarshal(text, into); err != nil {
		return true, errors.New("record: the tags contain no record")
	}
	return true, nil
}
