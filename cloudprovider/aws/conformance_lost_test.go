package aws_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws"
	"github.com/joinery-sdk/joinery/cloudprovider/cloudtest"
)

// asks says whether a request is for an action that begins so.
func asks(r *http.Request, action string) bool {
	if r.Body == nil {
		return false
	}
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return err == nil && bytes.Contains(body, []byte("Action="+action))
}

// The kit with replies to launches that get lost, and a provider that is started anew: the new one may have a history.
func TestConformanceWithLostReplies(t *testing.T) {
	t.Parallel()
	for name, config := range clouds() {
		if testing.Short() && name != "silent" && name != "eventual" { // the last is slow and has pages, too
			continue
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, config)
				transport, lost := cloudtest.NewLosingTransport(f.options().HTTPClient.Transport), 0
				open := func(change ...func(*aws.Options)) cloudprovider.Provider {
					return f.provider(t, append(change, func(o *aws.Options) { o.HTTPClient = &http.Client{Transport: transport} })...)
				}
				h := f.harness(open())
				h.Reopen = func(context.Context) (cloudprovider.Provider, error) {
					p := open(func(o *aws.Options) { o.Undecided = nil })
					time.Sleep(31 * time.Second)
					return p, nil
				}
				h.LoseReply = func(context.Context) (func(), error) {
					return transport.Lose(func(r *http.Request) bool {
						if !asks(r, "CreateFleet") && !asks(r, "TerminateInstances") {
							return false
						}
						lost++
						return true
					}), nil
				}
				h.LoseRead = func(_ context.Context, n int) (func(), error) {
					return transport.Lose(func(r *http.Request) bool {
						if asks(r, "Describe") {
							n--
						}
						return n == 0
					}), nil
				}
				require.NoError(t, h.Check(t.Context()))
				assert.Equal(t, 10, lost, "asked again at once, asked again, asked again after a restart, and deleted; deleted without an answer, and that before a restart; "+
					"asked again four times while a read is lost")
			})
		})
	}
}
