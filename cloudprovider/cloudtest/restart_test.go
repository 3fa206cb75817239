package cloudtest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/cloudtest"
	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
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

// The server acts, the client hears of an internal error, and only once.
func TestLosingTransportFail(t *testing.T) {
	made := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		made++
		_, _ = w.Write([]byte("a machine"))
	}))
	defer server.Close()
	transport := cloudtest.NewLosingTransport(nil)
	client := &http.Client{Transport: transport}
	get := func() (int, string) {
		reply, err := client.Get(server.URL)
		require.NoError(t, err)
		body, err := io.ReadAll(reply.Body)
		require.NoError(t, err)
		require.NoError(t, reply.Body.Close())
		return reply.StatusCode, string(body)
	}
	all := func(*http.Request) bool { return true }
	restore := transport.Fail(http.StatusServiceUnavailable, all)
	status, body := get()
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Empty(t, body)
	require.Equal(t, 1, made)
	status, body = get()
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "a machine", body)
	transport.Fail(http.StatusServiceUnavailable, all)
	restore()
	status, _ = get()
	require.Equal(t, http.StatusOK, status)
	transport.Fail(http.StatusServiceUnavailable, all)
	transport.Lose(all) // the last one counts
	_, err := client.Get(server.URL)
	require.ErrorIs(t, err, cloudtest.ErrLostReply)
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

// What the harness cannot do is no success of the provider.
func TestHarnessThatCannotLoseReads(t *testing.T) {
	h := harness(t, memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider { return c })
	h.LoseRead = func(context.Context, int) (func(), error) { return nil, errors.New("no transport") }
	err := h.Check(t.Context())
	assert.Len(t, violations(err), 2, err)
	for _, v := range violations(err) {
		assert.ErrorContains(t, v, "the harness did not lose a reply: no transport")
	}
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
