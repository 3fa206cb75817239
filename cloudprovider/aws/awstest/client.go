package awstest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
)

// The credentials that sign the calls of [Cloud.API]. They give access to nothing.
const (
	AccessKeyID     = "AKIAEXAMPLEEXAMPLE00"
	SecretAccessKey = "example/secret/access/key/of/nobody/0000"
)

// API returns how to reach the cloud with the real SDK, without a network and with the cloud's own
// limits.
func (c *Cloud) API() api.Config {
	return api.Config{
		Region: c.region.Name, Buckets: api.NewBuckets(c.config.Limits), HTTPClient: &http.Client{Transport: c},
		Credentials: credentials.NewStaticCredentialsProvider(AccessKeyID, SecretAccessKey, ""),
	}
}

// RoundTrip answers a request in the caller's goroutine, so that the time of a testing/synctest
// bubble stands still meanwhile. A caller that gives up before the answer gets none, but its
// request has been carried out.
func (c *Cloud) RoundTrip(r *http.Request) (answer *http.Response, err error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	defer func() {
		switch broken := recover(); broken {
		case nil:
		case http.ErrAbortHandler:
			answer, err = nil, io.ErrUnexpectedEOF
		default:
			panic(broken)
		}
	}()
	w := httptest.NewRecorder()
	if r.Body == nil {
		r = r.Clone(r.Context())
		r.Body = http.NoBody
	}
	c.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

// Begin moves the time of a testing/synctest bubble to the year 2026, in which the clouds of this
// package begin.
func Begin() { time.Sleep(time.Until(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))) }
