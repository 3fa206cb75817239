// Package events reports what AWS does to machines, as typed events. Most events come from an SQS
// queue that EventBridge writes to: spot warnings, rebalance recommendations, changes of state,
// scheduled changes, and the end of capacity reservations. EC2 is asked for what no queue reports
// in time: failing status checks, scheduled events, and the end of capacity blocks. Each event is
// delivered until it is confirmed.
package events

import (
	"context"
	"errors"
	"fmt"
	"maps"
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

// How long messages that were read stay hidden from other readers, and how many are requested at
// once.
const (
	hidden  = 5 * time.Minute
	most    = 10
	longest = 10 // seconds that a read waits for a message
)

// Fleet is the set of machines that the events are about.
type Fleet interface {
	// Owns returns the provider ids of the caller's own machines among these, by EC2's ids. With an
	// error it still returns those that it knows.
	Owns(ctx context.Context, ids []string) (map[string]string, error)
	// Reserved returns the capacity reservations of the caller's machines, by provider id.
	Reserved() map[string]string
}

// Options say where events come from: a queue, EC2 itself, or both.
type Options struct {
	// Queue is the name of an SQS queue. Empty means none.
	Queue string
	// StatusChecks says that EC2 is also asked, once a minute.
	StatusChecks bool
	// Nonce distinguishes cursors of this reader from those of earlier ones.
	Nonce string
}

// Source is a source of events. It is safe for concurrent use. Make one with [Open].
type Source struct {
	clients *api.Clients
	options Options
	url     string // of the queue

	mu     sync.Mutex
	asked  time.Time // when EC2 was last asked for status checks
	serial int
	held   []held
	// unresolved are messages about machines that could not be looked up.
	unresolved []types.Message
}

// held is a message whose events are not confirmed, or a lasting condition that EC2 reported.
type held struct {
	serial    int
	id        string // of the message, or of the event
	handle    string // of the message
	events    []interruption.Event
	confirmed bool // the condition lasts, but is not delivered again
}

// Open finds the queue. It reads nothing yet.
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

// Reading is the result of one [Source.Read].
type Reading struct {
	// Events are all events that are not confirmed, oldest first. Cursor confirms them.
	Events []interruption.Event
	Cursor string
	// Dropped counts the messages that were deleted at once: malformed ones, those of other
	// instances, and those of no interest.
	Dropped int
	// Failed joins the errors of the sources that could not be read, or is nil. The events of the
	// others are still present.
	Failed error
}

// Read reads the queue, and then asks EC2. Each source fails separately: a spot warning must not
// wait until a status check can be read. The error says that there is nothing to deliver because
// the queue (or EC2, if there is no queue) could not be read. Read waits up to ten seconds if there
// is nothing to deliver.
func (s *Source) Read(ctx context.Context, cursor string, of Fleet) (Reading, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	upTo, err := s.position(cursor)
	if err != nil {
		return Reading{}, err
	}
	r := Reading{Failed: s.confirm(ctx, upTo)}
	var first error // of the most important source
	if s.url != "" {
		r.Dropped, first = s.receive(ctx, len(s.unconfirmed()) == 0, of)
	}
	checked := s.check(ctx, of)
	if s.url == "" {
		first, checked = checked, nil
		if first == nil && len(s.unconfirmed()) == 0 {
			first = api.Wait(ctx, longest*time.Second)
		}
	}
	if err := ctx.Err(); err != nil {
		return Reading{}, err
	}
	r.Events, r.Cursor = s.unconfirmed(), s.options.Nonce+"-"+strconv.Itoa(s.serial)
	if first != nil && len(r.Events) == 0 {
		return Reading{}, first
	}
	r.Failed = errors.Join(r.Failed, first, checked)
	return r, nil
}

// unconfirmed returns the events to deliver.
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
	messages := append(s.unresolved, out.Messages...)
	s.unresolved = nil
	parsed := make([][]interruption.Event, len(messages))
	for i, m := range messages {
		parsed[i], _ = Parse(aws.ToString(m.Body)) // a message that cannot be read has no events and is dropped
	}
	mine, failed := owners(ctx, of, slices.Concat(parsed...))
	var useless []types.Message
	for i, m := range messages {
		if failed != nil && slices.ContainsFunc(parsed[i], func(e interruption.Event) bool { return mine[e.Instance] == "" }) {
			s.unresolved = append(s.unresolved, m) // the next reading asks again whose machine it is about
			continue
		}
		events := own(mine, parsed[i])
		if len(events) == 0 {
			useless = append(useless, m)
			continue
		}
		s.hold(aws.ToString(m.MessageId), aws.ToString(m.ReceiptHandle), events)
	}
	return len(useless), errors.Join(failed, s.remove(ctx, useless))
}

// hold keeps something to deliver. If it comes again, it keeps its place.
func (s *Source) hold(id, handle string, events []interruption.Event) {
	if i := slices.IndexFunc(s.held, func(h held) bool { return h.id == id }); i >= 0 {
		s.held[i].handle = handle
		return
	}
	s.serial++
	s.held = append(s.held, held{serial: s.serial, id: id, handle: handle, events: events})
}

// position returns how far a cursor confirms. Cursors of earlier readers confirm nothing, so their
// events come again.
func (s *Source) position(cursor string) (int, error) {
	if cursor == "" {
		return 0, nil
	}
	i := strings.LastIndex(cursor, "-")
	n, err := strconv.Atoi(cursor[i+1:])
	if i < 0 || err != nil || n < 0 {
		return 0, &cloudprovider.Error{Code: cloudprovider.ErrInvalidSpec, Err: fmt.Errorf("%q is not a cursor of events", cursor)}
	}
	if cursor[:i] != s.options.Nonce {
		return 0, nil
	}
	return n, nil
}

// confirm deletes the messages up to a number, and marks lasting conditions as known.
func (s *Source) confirm(ctx context.Context, n int) error {
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

// remove deletes messages, ten per call.
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

// owners returns the provider ids of the caller's own machines among those of the events. If some
// could not be looked up, it returns the others and an error.
func owners(ctx context.Context, of Fleet, events []interruption.Event) (map[string]string, error) {
	ids := map[string]bool{}
	for _, e := range events {
		ids[e.Instance] = true
	}
	if len(ids) == 0 {
		return nil, nil
	}
	return of.Owns(ctx, slices.Sorted(maps.Keys(ids)))
}

// own returns the events of the caller's own machines, each once, under their provider ids.
func own(mine map[string]string, events []interruption.Event) []interruption.Event {
	var out []interruption.Event
	for _, e := range events {
		if id, ok := mine[e.Instance]; ok && !slices.ContainsFunc(out, func(have interruption.Event) bool { return have.ID == e.ID }) {
			e.Instance = id
			out = append(out, e)
		}
	}
	return out
}

// Message is one message of the queue, read without taking it.
type Message struct {
	// ID is the message id of SQS, and Body the text.
	ID, Body string
	// Events are the events that it announces, for instances by their bare ids. There are none if
	// it is of no interest.
	Events []interruption.Event
	// Err says that the message is malformed.
	Err error
}

// Peek reads up to n messages and leaves them in the queue. Other readers do not see them for a
// while, and then see them again. It returns fewer once a read finds nothing new.
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
