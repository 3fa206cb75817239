package record

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
