// Package queue reads what EC2 and AWS Health announce about machines from an SQS queue that EventBridge writes to: spot warnings,
// rebalance recommendations, changes of state, scheduled changes, and the end of capacity reservations, as typed events.
package queue

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/interruption"
)

// Messages that were read stay hidden from other readers for so long, and are asked for in numbers of so many at once.
const (
	hidden  = 5 * time.Minute
	most    = 10
	longest = 10 // seconds that a reading waits for a message
)

// Queue is a queue of events. It is safe for concurrent use; make one by [Open].
type Queue struct {
	clients *api.Clients
	clock   api.Clock
	url     string
	nonce   string

	mu     sync.Mutex
	serial int
	held   []held
}

// held is a message whose events were delivered, or are about to be, and are not confirmed.
type held struct {
	serial int
	id     string
	handle string
	until  time.Time
	events []interruption.Event
}

// Open finds a queue by its name. The nonce tells cursors of this reader from those of earlier ones.
func Open(ctx context.Context, clients *api.Clients, clock api.Clock, name, nonce string) (*Queue, error) {
	out, err := clients.SQS.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(name)})
	if err != nil {
		return nil, err
	}
	return &Queue{clients: clients, clock: clock, url: aws.ToString(out.QueueUrl), nonce: nonce}, nil
}

// Read returns all events that are not confirmed, and a cursor that confirms them. Owns finds the provider ids of the instances that
// are the caller's own. Messages that are malformed, of other instances, or of no interest are deleted at once, and counted.
// It waits up to ten seconds for a message if there is nothing to return.
func (q *Queue) Read(ctx context.Context, cursor string, owns func(ctx context.Context, ids []string) (map[string]string, error)) (events []interruption.Event, next string, dropped int, err error) {
	return q.read(ctx, cursor, longest, owns)
}

// Check is like Read, and does not wait.
func (q *Queue) Check(ctx context.Context, cursor string, owns func(ctx context.Context, ids []string) (map[string]string, error)) (events []interruption.Event, next string, dropped int, err error) {
	return q.read(ctx, cursor, 0, owns)
}

func (q *Queue) read(ctx context.Context, cursor string, wait int32, owns func(ctx context.Context, ids []string) (map[string]string, error)) (events []interruption.Event, next string, dropped int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.confirm(ctx, cursor); err != nil {
		return nil, "", 0, err
	}
	if len(q.held) > 0 {
		wait = 0
	}
	out, err := q.clients.SQS.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: aws.String(q.url), MaxNumberOfMessages: most, WaitTimeSeconds: wait, VisibilityTimeout: int32(hidden / time.Second),
	})
	if err != nil {
		return nil, "", 0, err
	}
	var ids []string
	parsed := make([][]interruption.Event, len(out.Messages))
	for i, m := range out.Messages {
		parsed[i], _ = Parse(aws.ToString(m.Body)) // a message that cannot be read says nothing, and is dropped below
		for _, e := range parsed[i] {
			ids = append(ids, e.Instance)
		}
	}
	mine := map[string]string{}
	if len(ids) > 0 {
		if mine, err = owns(ctx, ids); err != nil {
			return nil, "", 0, err // the messages show again once they are not hidden any more
		}
	}
	var useless []types.Message
	for i, m := range out.Messages {
		var own []interruption.Event
		for _, e := range parsed[i] {
			if id, ok := mine[e.Instance]; ok {
				e.Instance = id
				own = append(own, e)
			}
		}
		if len(own) == 0 {
			useless = append(useless, m)
			continue
		}
		q.hold(m, own)
	}
	if err := q.remove(ctx, useless); err != nil {
		return nil, "", 0, err
	}
	for _, h := range q.held {
		events = append(events, h.events...)
	}
	slices.SortStableFunc(events, func(a, b interruption.Event) int { return a.At.Compare(b.At) })
	return events, q.nonce + "-" + strconv.Itoa(q.serial), len(useless), nil
}

// hold keeps a message; one that comes again keeps its place.
func (q *Queue) hold(m types.Message, events []interruption.Event) {
	until := q.clock.Time().Add(hidden)
	for i := range q.held {
		if q.held[i].id == aws.ToString(m.MessageId) {
			q.held[i].handle, q.held[i].until = aws.ToString(m.ReceiptHandle), until
			return
		}
	}
	q.serial++
	q.held = append(q.held, held{q.serial, aws.ToString(m.MessageId), aws.ToString(m.ReceiptHandle), until, events})
}

// confirm deletes the messages up to a cursor. Cursors of earlier readers confirm nothing: their messages come again.
func (q *Queue) confirm(ctx context.Context, cursor string) error {
	if cursor == "" {
		return nil
	}
	i := strings.LastIndex(cursor, "-")
	if i < 0 {
		return &cloudprovider.Error{Code: cloudprovider.ErrInvalidSpec, Err: fmt.Errorf("%q is no cursor of a queue", cursor)}
	}
	n, err := strconv.Atoi(cursor[i+1:])
	if err != nil || n < 0 {
		return &cloudprovider.Error{Code: cloudprovider.ErrInvalidSpec, Err: fmt.Errorf("%q is no cursor of a queue", cursor)}
	}
	if cursor[:i] != q.nonce {
		return nil
	}
	var done []types.Message
	for _, h := range q.held {
		if h.serial <= n {
			done = append(done, types.Message{MessageId: aws.String(h.id), ReceiptHandle: aws.String(h.handle)})
		}
	}
	if err := q.remove(ctx, done); err != nil {
		return err
	}
	q.held = slices.DeleteFunc(q.held, func(h held) bool { return h.serial <= n })
	return nil
}

// remove deletes messages, ten a call.
func (q *Queue) remove(ctx context.Context, list []types.Message) error {
	for chunk := range slices.Chunk(list, most) {
		var entries []types.DeleteMessageBatchRequestEntry
		for i, m := range chunk {
			entries = append(entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle})
		}
		out, err := q.clients.SQS.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: aws.String(q.url), Entries: entries})
		if err != nil {
			return err
		}
		if len(out.Failed) > 0 {
			return &cloudprovider.Error{Code: cloudprovider.ErrNotReady, Err: fmt.Errorf("sqs:DeleteMessageBatch: %s: %s", aws.ToString(out.Failed[0].Code), aws.ToString(out.Failed[0].Message))}
		}
	}
	return nil
}

// Message is one message of the queue as somebody sees it who only looks.
type Message struct {
	// ID is SQS's, Body the text.
	ID, Body string
	// Events are what it announces, of instances by their bare ids; none if it is of no interest.
	Events []interruption.Event
	// Err says that the message is malformed.
	Err error
}

// Peek reads up to n messages and leaves them in the queue: for a while other readers do not see them, then they do again. It
// returns less once a reading finds nothing new.
func (q *Queue) Peek(ctx context.Context, n int) ([]Message, error) {
	var list []Message
	seen := map[string]bool{}
	for len(list) < n {
		out, err := q.clients.SQS.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: aws.String(q.url), MaxNumberOfMessages: most, WaitTimeSeconds: 1, VisibilityTimeout: 30,
		})
		if err != nil {
			return nil, err
		}
		fresh := 0
		for _, m := range out.Messages {
			if id := aws.ToString(m.MessageId); !seen[id] {
				seen[id] = true
				fresh++
				read := Message{ID: id, Body: aws.ToString(m.Body)}
				read.Events, read.Err = Parse(read.Body)
				list = append(list, read)
			}
		}
		if fresh == 0 {
			break
		}
	}
	return list[:min(len(list), n)], nil
}
