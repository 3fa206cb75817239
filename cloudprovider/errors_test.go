package cloudprovider_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/requirements"
)

func TestAdvise(t *testing.T) {
	for _, test := range []struct {
		err  error
		want cloudprovider.Advice
	}{
		{nil, cloudprovider.Advice{Retry: cloudprovider.RetryNever}},
		{cloudprovider.ErrUnauthorized, cloudprovider.Advice{Retry: cloudprovider.RetryNever}},
		{cloudprovider.ErrUnsupported, cloudprovider.Advice{Retry: cloudprovider.RetryNever}},
		{cloudprovider.ErrInvalidSpec, cloudprovider.Advice{Retry: cloudprovider.RetryNever}},
		{cloudprovider.ErrNotFound, cloudprovider.Advice{Retry: cloudprovider.RetryNever}},
		{cloudprovider.ErrNotReady, cloudprovider.Advice{Retry: cloudprovider.RetrySame}},
		{cloudprovider.ErrThrottled, cloudprovider.Advice{Retry: cloudprovider.RetrySame}},
		{cloudprovider.ErrQuota, cloudprovider.Advice{Retry: cloudprovider.RetryElsewhere}},
		{cloudprovider.ErrInsufficientCapacity, cloudprovider.Advice{Retry: cloudprovider.RetryElsewhere}},
		{context.Canceled, cloudprovider.Advice{Retry: cloudprovider.RetrySame, Unknown: true}},
		{errors.New("connection reset"), cloudprovider.Advice{Retry: cloudprovider.RetrySame, Unknown: true}},
		{errors.Join(cloudprovider.ErrInsufficientCapacity, cloudprovider.ErrUnauthorized), cloudprovider.Advice{Retry: cloudprovider.RetryNever}},
	} {
		t.Run(fmt.Sprint(test.err), func(t *testing.T) {
			assert.Equal(t, test.want, cloudprovider.Advise(test.err))
			if test.err != nil {
				assert.Equal(t, test.want, cloudprovider.Advise(fmt.Errorf("wrapped: %w", test.err)))
			}
		})
	}
	for _, code := range cloudprovider.Codes() {
		assert.False(t, cloudprovider.Advise(&cloudprovider.Error{Code: code}).Unknown, code)
	}
	assert.Len(t, cloudprovider.Codes(), 8)
}

func TestError(t *testing.T) {
	cause := errors.New("InsufficientInstanceCapacity")
	err := error(&cloudprovider.Error{
		Code: cloudprovider.ErrInsufficientCapacity, Op: "create", Subject: "node-1",
		Refused:    []cloudprovider.Refusal{{Type: "m.large", Offering: requirements.MustParse("zone=a"), Detail: "none left"}},
		Quotas:     []cloudprovider.Quota{{Name: "cores", Blocks: requirements.MustParse("family=p"), Used: 96, Limit: 100}, {Name: "all"}},
		RetryAfter: time.Minute, Err: cause,
	})
	require.ErrorIs(t, err, cloudprovider.ErrInsufficientCapacity)
	require.ErrorIs(t, err, cause)
	require.NotErrorIs(t, err, cloudprovider.ErrQuota)
	assert.Equal(t, `cloudprovider: create "node-1": insufficient capacity: m.large (zone in (a)): none left; `+
		`quota "cores" (96 of 100 used) blocks family in (p); quota "all" blocks everything; retry after 1m0s; InsufficientInstanceCapacity`, err.Error())

	list := &cloudprovider.Error{Code: cloudprovider.ErrThrottled, Op: "list", RetryAfter: time.Minute}
	assert.Equal(t, "cloudprovider: list: throttled: retry after 1m0s", list.Error())

	zero := &cloudprovider.Error{}
	assert.Equal(t, "cloudprovider: error without a code", zero.Error())
	for _, code := range cloudprovider.Codes() {
		require.NotErrorIs(t, zero, code)
	}
}
