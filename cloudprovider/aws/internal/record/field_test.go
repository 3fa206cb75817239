package record

import (
	"bytes"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
)

// A struct that has gained a field since version 1 has the hash of version 1 as long as the field is not set.
func TestNewFieldsChangeNoHash(t *testing.T) {
	type ConnectionTracking struct{ New, TCPEstablished, UDPStream, UDP int64 } // as nodeclass has it, and one more
	text := func(c ConnectionTracking) string {
		var b bytes.Buffer
		require.NoError(t, write(&b, reflect.ValueOf(&c)))
		return b.String()
	}
	assert.Equal(t, `{"TCPEstablished":60,"UDPStream":0,"UDP":30}`, text(ConnectionTracking{TCPEstablished: 60, UDP: 30}))
	assert.Equal(t, `{"TCPEstablished":60,"UDPStream":0,"UDP":30,"New":1}`, text(ConnectionTracking{TCPEstablished: 60, UDP: 30, New: 1}))
}

// Every struct within a node class is written by fields that are named here, so that none of them changes hashes when it gains a field.
func TestEveryStructIsNamed(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var walk func(of reflect.Type)
	walk = func(of reflect.Type) {
		switch {
		case of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map:
			walk(of.Elem())
		case of.Kind() == reflect.Struct && of.PkgPath() == reflect.TypeFor[nodeclass.NodeClass]().PkgPath() && !seen[of] && !slices.Contains([]string{"Term", "Status"}, of.Name()): // what is selected and found is left out
			seen[of] = true
			assert.NotEmpty(t, fields(of.Name()), of.Name())
			for field := range of.Fields() {
				walk(field.Type)
			}
		}
	}
	walk(reflect.TypeFor[nodeclass.NodeClass]())
	assert.Greater(t, len(seen), 5)
}
