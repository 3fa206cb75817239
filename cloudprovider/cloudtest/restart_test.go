package cloudtest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider/cloudtest"
)

// The server acts, the client never hears of it, and only once.
func TestLosingTransport(t *testing.T) {
	made := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			made++
		}
	}))
	defer server.Close()
	transport := cloudtest.NewLosingTransport(nil)
	client := &http.Client{Transport: transport}
	post := func() error {
		reply, err := client.Post(server.URL, "text/plain", nil)
		if err == nil {
			err = reply.Body.Close()
		}
		return err
	}
	require.NoError(t, post())
	restore := transport.Lose(func(r *http.Request) bool { return r.Method == http.MethodPost })
	require.ErrorIs(t, post(), cloudtest.ErrLostReply)
	require.Equal(t, 2, made)
	require.NoError(t, post())
	transport.Lose(func(*http.Request) bool { return true })
	restore()
	require.NoError(t, post())
}

// A function that panics, for example about a request without a body, shows its panic: the restore function that runs then does
// not wait for ever.
func TestLosingTransportWithAFunctionThatPanics(t *testing.T) {
	transport := cloudtest.NewLosingTransport(nil)
	require.PanicsWithValue(t, "no body", func() {
		restore := transport.Lose(func(*http.Request) bool { panic("no body") })
		defer restore()
		_, _ = transport.RoundTrip(httptest.NewRequest(http.MethodGet, "/", nil)) //nolint:bodyclose // there is none
	})
}

func ExampleLosingTransport() {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	transport := cloudtest.NewLosingTransport(nil)
	transport.Lose(func(*http.Request) bool { return true })
	_, err := (&http.Client{Transport: transport}).Get(server.URL) //nolint:bodyclose,noctx // there is none
	fmt.Println(err != nil)
	// Output: true
}
