// Package events tells what AWS does to machines, as typed events. Most of it comes from an SQS queue that EventBridge writes to: spot warnings,
// rebalance recommendations, changes of state, scheduled changes, and the end of capacity reservations. What no queue tells in time EC2 is asked for:
// status checks that fail, scheduled events, and the end of capacity blocks. Each event is delivered until it is confirmed.
package events

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
	longest = 10 // seconds that a reading waits for something to tell
)

// Fleet is whose machines the events are about.
type Fleet interface {
	// Owns finds the provider ids of those machines that are the caller's own, by EC2's ids.
	Owns(ctx context.Context, ids []string) (map[string]string, error)
	// Reserved are the capacity reservations of the caller's machines, by provider id.
	Reserved() map[string]string
}

// Options say where events come from: a queue, EC2 itself, or both.
type Options struct {
	// Queue is the name of an SQS queue; empty = none.
	Queue string
	// StatusChecks says that EC2 is asked, too, once a minute.
	StatusChecks bool
	// Nonce tells cursors of this reader from those of earlier ones.
	Nonce string
}

// Source is where events come from. It is safe for concurrent use; make one by [Open].
type Source struct {
	clients *api.Clients
	options Options
	url     string // of the queue

	mu     sync.Mutex
	asked  time.Time // when EC2 was asked for status checks
	serial int
	held   []held
}

// held is a message whose events are not confirmed, or something that EC2 was asked for and that lasts.
type held struct {
	serial    int
	id        string // of the message, or of the event
	handle    string // of the message
	events    []interruption.Event
	confirmed bool // it lasts, and is not delivered again
}

// Open finds the queue. Nothing is read yet.
func Open(ctx context.Context, clients *api.Clients, options Options) (*Source, error) {
	s := &Source{clients: clients, options: options}
	if options.Queue != "" {
		out, err := clients.SQS.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(options.Queue)})
		if err != nil {
			return nil, err
		}
		s.url = aws.ToString(out.QueueUrl)
	}
	return s, nil
}

// Read returns all events that are not confirmed, oldest first, and a cursor that confirms them. Messages that are malformed, of other instances, or of
// no interest are deleted at once, and counted. It waits up to ten seconds if there is nothing to return.
func (s *Source) Read(ctx context.Context, cursor string, of Fleet) (events []interruption.Event, next string, dropped int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.confirm(ctx, cursor); err != nil {
		return nil, "", 0, err
	}
	if err := s.check(ctx, of); err != nil {
		return nil, "", 0, err
	}
	switch idle := len(s.unconfirmed()) == 0; {
	case s.url != "":
		dropped, err = s.receive(ctx, idle, of)
	case idle:
		err = api.Wait(ctx, longest*time.Second)
	}
	if err != nil {
		return nil, "", 0, err
	}
	return s.unconfirmed(), s.options.Nonce + "-" + strconv.Itoa(s.serial), dropped, nil
}

// unconfirmed are the events to deliver.
func (s *Source) unconfirmed() []interruption.Event {
	var out []interruption.Event
	for _, h := range s.held {
		if !h.confirmed {
			out = append(out, h.events...)
		}
	}
	slices.SortStableFunc(out, func(a, b interruption.Event) int { return a.At.Compare(b.At) })
	return out
}

// receive reads the queue once.
func (s *Source) receive(ctx context.Context, wait bool, of Fleet) (dropped int, err error) {
	in := &sqs.ReceiveMessageInput{QueueUrl: aws.String(s.url), MaxNumberOfMessages: most, VisibilityTimeout: int32(hidden / time.Second)}
	if wait {
		in.WaitTimeSeconds = longest
	}
	out, err := s.clients.SQS.ReceiveMessage(ctx, in)
	if err != nil {
		return 0, err
	}
	var useless []types.Message
	for _, m := range out.Messages {
		parsed, _ := Parse(aws.ToString(m.Body)) // a message that cannot be read says nothing, and is dropped
		events, err := own(ctx, of, parsed)
		if err != nil {
			return 0, err // the messages show again once they are not hidden any more
		}
		if len(events) == 0 {
			useless = append(useless, m)
			continue
		}
		s.hold(aws.ToString(m.MessageId), aws.ToString(m.ReceiptHandle), events)
	}
	return len(useless), s.remove(ctx, useless)
}

// hold keeps something to deliver; what comes again keeps its place.
func (s *Source) hold(id, handle string, events []interruption.Event) {
	if i := slices.IndexFunc(s.held, func(h held) bool { return h.id == id }); i >= 0 {
		s.held[i].handle = handle
		return
	}
	s.serial++
	s.held = append(s.held, held{serial: s.serial, id: id, handle: handle, events: events})
}

// confirm deletes the messages up to a cursor, and takes the rest for known. Cursors of earlier readers confirm nothing: what they were told comes again.
func (s *Source) confirm(ctx context.Context, cursor string) error {
	if cursor == "" {
		return nil
	}
	i := strings.LastIndex(cursor, "-")
	n, err := strconv.Atoi(cursor[i+1:])
	if i < 0 || err != nil || n < 0 {
		return &cloudprovider.Error{Code: cloudprovider.ErrInvalidSpec, Err: fmt.Errorf("%q is no cursor of events", cursor)}
	}
	if cursor[:i] != s.options.Nonce {
		return nil
	}
	var done []types.Message
	for _, h := range s.held {
		if h.serial <= n && h.handle != "" {
			done = append(done, types.Message{MessageId: aws.String(h.id), ReceiptHandle: aws.String(h.handle)})
		}
	}
	if err := s.remove(ctx, done); err != nil {
		return err
	}
	s.held = slices.DeleteFunc(s.held, func(h held) bool { return h.serial <= n && h.handle != "" })
	for i := range s.held {
		s.held[i].confirmed = s.held[i].confirmed || s.held[i].serial <= n
	}
	return nil
}

// remove deletes messages, ten a call.
func (s *Source) remove(ctx context.Context, list []types.Message) error {
	for chunk := range slices.Chunk(list, most) {
		var entries []types.DeleteMessageBatchRequestEntry
		for i, m := range chunk {
			entries = append(entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle})
		}
		out, err := s.clients.SQS.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: aws.String(s.url), Entries: entries})
		if err != nil {
			return err
		}
		if len(out.Failed) > 0 {
			return &cloudprovider.Error{Code: cloudprovider.ErrNotReady, Err: fmt.Errorf("sqs:DeleteMessageBatch: %s: %s", aws.ToString(out.Failed[0].Code), aws.ToString(out.Failed[0].Message))}
		}
	}
	return nil
}

// own keeps the events of the caller's own machines, each once, under their provider ids.
func own(ctx context.Context, of Fleet, events []interruption.Event) ([]interruption.Event, error) {
	var ids []string
	for _, e := range events {
		ids = append(ids, e.Instance)
	}
	if len(ids) == 0 {
		return nil, nil
	}
	slices.Sort(ids)
	mine, err := of.Owns(ctx, slices.Compact(ids))
	if err != nil {
		return nil, err
	}
	var out []interruption.Event
	for _, e := range events {
		if id, ok := mine[e.Instance]; ok && !slices.ContainsFunc(out, func(have interruption.Event) bool { return have.ID == e.ID }) {
			e.Instance = id
			out = append(out, e)
		}
	}
	return out, nil
}

// Message is one message of the queue, read without taking it.
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
func (s *Source) Peek(ctx context.Context, n int) ([]Message, error) {
	var list []Message
	seen := map[string]bool{}
	for len(list) < n {
		out, err := s.clients.SQS.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: aws.String(s.url), MaxNumberOfMessages: most, WaitTimeSeconds: 1, VisibilityTimeout: 30,
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
