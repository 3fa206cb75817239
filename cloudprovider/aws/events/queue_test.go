package events_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/events"
	"github.com/joinery-sdk/joinery/cloudprovider/interruption"
)

const head = `{"version":"0","id":"e-1","time":"2026-01-31T12:00:00Z","region":"us-east-1",`

func TestParse(t *testing.T) {
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	one := func(kind interruption.Kind, deadline time.Time) []interruption.Event {
		return []interruption.Event{{ID: "e-1", Instance: "i-1", Kind: kind, At: at, Deadline: deadline}}
	}
	ec2 := func(kind, more string) string {
		return head + `"source":"aws.ec2","detail-type":"` + kind + `","detail":{"instance-id":"i-1"` + more + `}}`
	}
	for name, test := range map[string]struct {
		body string
		want []interruption.Event
		err  string
	}{
		"spot":        {ec2("EC2 Spot Instance Interruption Warning", `,"instance-action":"terminate"`), one(interruption.SpotInterrupted, at.Add(2*time.Minute)), ""},
		"rebalance":   {ec2("EC2 Instance Rebalance Recommendation", ""), one(interruption.RebalanceRecommended, time.Time{}), ""},
		"reservation": {ec2("EC2 Capacity Reservation Instance Interruption Warning", ""), one(interruption.ReservationInterrupted, time.Time{}), ""},
		"stopping":    {ec2("EC2 Instance State-change Notification", `,"state":"stopping"`), one(interruption.InstanceStopping, time.Time{}), ""},
		"stopped":     {ec2("EC2 Instance State-change Notification", `,"state":"stopped"`), one(interruption.InstanceStopping, time.Time{}), ""},
		"ending":      {ec2("EC2 Instance State-change Notification", `,"state":"shutting-down"`), one(interruption.InstanceTerminating, time.Time{}), ""},
		"ended":       {ec2("EC2 Instance State-change Notification", `,"state":"terminated"`), one(interruption.InstanceTerminating, time.Time{}), ""},
		"running":     {ec2("EC2 Instance State-change Notification", `,"state":"running"`), nil, ""},
		"a new kind":  {ec2("EC2 Instance Applause", ""), nil, ""},
		"scheduled": {
			head + `"source":"aws.health","detail-type":"AWS Health Event","detail":{"service":"EC2","eventTypeCategory":"scheduledChange","startTime":"Sat, 07 Feb 2026 04:00:00 GMT","affectedEntities":[{"entityValue":"i-1"},{"entityValue":"vol-1"},{"entityValue":"i-2"}]}}`,
			[]interruption.Event{
				{ID: "e-1/i-1", Instance: "i-1", Kind: interruption.MaintenanceScheduled, At: at, Deadline: time.Date(2026, 2, 7, 4, 0, 0, 0, time.UTC)},
				{ID: "e-1/i-2", Instance: "i-2", Kind: interruption.MaintenanceScheduled, At: at, Deadline: time.Date(2026, 2, 7, 4, 0, 0, 0, time.UTC)},
			},
			"",
		},
		"health is over":   {head + `"source":"aws.health","detail-type":"AWS Health Event","detail":{"service":"EC2","eventTypeCategory":"scheduledChange","statusCode":"closed","affectedEntities":[{"entityValue":"i-1"}]}}`, nil, ""},
		"health of others": {head + `"source":"aws.health","detail-type":"AWS Health Event","detail":{"service":"RDS","eventTypeCategory":"scheduledChange"}}`, nil, ""},
		"health issue":     {head + `"source":"aws.health","detail-type":"AWS Health Event","detail":{"service":"EC2","eventTypeCategory":"issue"}}`, nil, ""},
		"other service":    {head + `"source":"aws.s3","detail-type":"Object Created","detail":{}}`, nil, ""},
		"no JSON":          {"hello", nil, "not an event of EventBridge"},
		"empty":            {"", nil, "not an event of EventBridge"},
		"no envelope":      {`{"instance-id":"i-1"}`, nil, "lacks its id"},
		"new version":      {`{"version":"1","id":"e","time":"2026-01-31T12:00:00Z","source":"aws.ec2","detail-type":"x"}`, nil, "version"},
		"no instance":      {head + `"source":"aws.ec2","detail-type":"EC2 Instance Rebalance Recommendation","detail":{}}`, nil, "names no instance"},
		"strange instance": {head + `"source":"aws.ec2","detail-type":"EC2 Instance Rebalance Recommendation","detail":{"instance-id":"server"}}`, nil, "names no instance"},
		"detail is a list": {head + `"source":"aws.ec2","detail-type":"EC2 Instance Rebalance Recommendation","detail":[1]}`, nil, "names no instance"},
		"health is a list": {head + `"source":"aws.health","detail-type":"AWS Health Event","detail":[1]}`, nil, "no detail of the known form"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := events.Parse(test.body)
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
		})
	}
}

func FuzzParse(f *testing.F) {
	seeds, err := filepath.Glob("testdata/seeds/*.json")
	require.NoError(f, err)
	for _, path := range seeds {
		data, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(string(data))
	}
	f.Fuzz(func(t *testing.T, body string) {
		list, err := events.Parse(body)
		if err != nil {
			assert.Empty(t, list)
			return
		}
		for _, e := range list {
			assert.NotEmpty(t, e.ID)
			assert.Regexp(t, `^i-`, e.Instance)
			assert.False(t, e.At.IsZero())
			assert.NotEmpty(t, e.Kind)
		}
	})
}

func open(t *testing.T) (*awstest.Cloud, func(nonce string) *events.Source) {
	t.Helper()
	awstest.Begin()
	cloud, err := awstest.New(awstest.Config{})
	require.NoError(t, err)
	clients, err := api.Connect(t.Context(), cloud.API())
	require.NoError(t, err)
	return cloud, func(nonce string) *events.Source {
		q, err := events.Open(t.Context(), clients, events.Options{Queue: "harbour", Nonce: nonce})
		require.NoError(t, err)
		return q
	}
}

// ours are the instances with an even number.
type ours struct{ everything }

func (ours) Owns(_ context.Context, ids []string) (map[string]string, error) {
	out := map[string]string{}
	for _, id := range ids {
		if (id[len(id)-1]-'0')%2 == 0 {
			out[id] = "aws:///us-east-1a/" + id
		}
	}
	return out, nil
}

func TestReadAndConfirm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud, reader := open(t)
		q := reader("a")
		for i := range 8 {
			cloud.InterruptSpot(fmt.Sprintf("i-%d", i))
		}
		cloud.Send("malformed")
		r, err := q.Read(t.Context(), "", ours{})
		require.NoError(t, err)
		list, cursor := r.Events, r.Cursor
		require.Len(t, list, 4)
		assert.Equal(t, 5, r.Dropped, "four of other machines, one malformed")
		assert.Equal(t, 4, cloud.Queued())
		for i, e := range list {
			assert.Equal(t, fmt.Sprintf("aws:///us-east-1a/i-%d", 2*i), e.Instance)
		}
		// Not confirmed: they come again, also after the queue has shown them again.
		time.Sleep(6 * time.Minute)
		again, err := q.Read(t.Context(), "", ours{})
		require.NoError(t, err)
		assert.Equal(t, list, again.Events)
		// A cursor of an earlier reader confirms nothing.
		other := reader("b")
		time.Sleep(6 * time.Minute)
		fresh, err := other.Read(t.Context(), cursor, ours{})
		require.NoError(t, err)
		assert.Len(t, fresh.Events, 4)
		// Confirmed: they are gone.
		time.Sleep(6 * time.Minute)
		r, err = other.Read(t.Context(), "", ours{})
		require.NoError(t, err)
		r, err = other.Read(t.Context(), r.Cursor, ours{})
		require.NoError(t, err)
		assert.Empty(t, r.Events)
		assert.Zero(t, cloud.Queued())
	})
}

func TestCursorsOfNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, reader := open(t)
		q := reader("a")
		for _, cursor := range []string{"x", "a-x", "a-"} {
			_, err := q.Read(t.Context(), cursor, ours{})
			require.ErrorIs(t, err, cloudprovider.ErrInvalidSpec, cursor)
		}
	})
}

// A failure in between loses nothing.
func TestReadAfterFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud, reader := open(t)
		q := reader("a")
		cloud.InterruptSpot("i-2")
		_, err := q.Read(t.Context(), "", nobodyKnows{})
		require.ErrorIs(t, err, context.Canceled)
		r, err := q.Read(t.Context(), "", ours{})
		require.NoError(t, err)
		require.Len(t, r.Events, 1, "it does not wait until the queue shows the message again")
		cursor := r.Cursor
		cloud.SetFault(func(c awstest.Call) awstest.Fault {
			if c.Action == "DeleteMessageBatch" {
				return awstest.Fault{Code: "AccessDenied", Message: "not allowed"}
			}
			return awstest.Fault{}
		})
		r, err = q.Read(t.Context(), cursor, ours{})
		require.NoError(t, err)
		require.Len(t, r.Events, 1)
		require.ErrorIs(t, r.Failed, cloudprovider.ErrUnauthorized)
		require.ErrorContains(t, r.Failed, "sqs:DeleteMessageBatch")
		cloud.SetFault(nil)
		r, err = q.Read(t.Context(), cursor, ours{})
		require.NoError(t, err)
		assert.Empty(t, r.Events)
		assert.Zero(t, cloud.Queued())
	})
}

func TestPeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud, reader := open(t)
		for i := range 23 {
			cloud.InterruptSpot(fmt.Sprintf("i-%d", i))
		}
		cloud.Send("malformed")
		for range 2 {
			list, err := reader("a").Peek(t.Context(), 100)
			require.NoError(t, err)
			require.Len(t, list, 24)
			assert.Error(t, list[23].Err)
			assert.Len(t, list[0].Events, 1)
			assert.Equal(t, 24, cloud.Queued())
			time.Sleep(time.Minute)
		}
		list, err := reader("a").Peek(t.Context(), 5)
		require.NoError(t, err)
		assert.Len(t, list, 5)
	})
}

func ExampleParse() {
	list, err := events.Parse(`{"version":"0","id":"1","source":"aws.ec2","detail-type":"EC2 Spot Instance Interruption Warning",` +
		`"time":"2026-01-31T12:00:00Z","detail":{"instance-id":"i-0123456789abcdef0","instance-action":"terminate"}}`)
	if err != nil {
		panic(err)
	}
	for _, e := range list {
		fmt.Println(e.Instance, e.Kind, e.Kind.Respond(), e.Deadline.Format(time.TimeOnly))
	}
	// Output: i-0123456789abcdef0 SpotInterrupted Drain 12:02:00
}

func ExampleOpen() {
	cloud, err := awstest.New(awstest.Config{})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	clients, err := api.Connect(ctx, cloud.API())
	if err != nil {
		panic(err)
	}
	q, err := events.Open(ctx, clients, events.Options{Queue: "harbour", Nonce: "reader-1"})
	if err != nil {
		panic(err)
	}
	cloud.InterruptSpot("i-2")
	cloud.InterruptSpot("i-3") // not ours
	r, err := q.Read(ctx, "", ours{})
	if err != nil {
		panic(err)
	}
	for _, e := range r.Events {
		fmt.Println(e.Instance, e.Kind)
	}
	fmt.Println(r.Dropped, "dropped, confirmed by", r.Cursor)
	// Output:
	// aws:///us-east-1a/i-2 SpotInterrupted
	// 1 dropped, confirmed by reader-1-1
}

// nobodyKnows is a fleet that cannot be read.
type nobodyKnows struct{ everything }

func (nobodyKnows) Owns(context.Context, []string) (map[string]string, error) {
	return nil, context.Canceled
}
