package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/events"
)

// readMessages finds messages in a text in every form in which AWS prints them: JSON values one
// after the other or in lists, over one line or many, what `aws sqs receive-message` prints, and
// what SNS wraps around them. What is no JSON is one malformed message; the next one is looked for
// at the next line that begins a value.
func readMessages(text []byte, most int) []events.Message {
	var out []events.Message
	add := func(line int, body []byte) {
		if len(out) < most {
			m := events.Message{ID: fmt.Sprintf("line %d", line), Body: string(body)}
			m.Events, m.Err = events.Parse(m.Body)
			out = append(out, m)
		}
	}
	rest := bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	for line := 1; len(out) < most; {
		trimmed := bytes.TrimLeft(rest, " \t\r\n,")
		line += bytes.Count(rest[:len(rest)-len(trimmed)], []byte("\n"))
		if rest = trimmed; len(rest) == 0 {
			return out
		}
		var value json.RawMessage
		d := json.NewDecoder(bytes.NewReader(rest))
		if err := d.Decode(&value); err != nil {
			out = append(out, events.Message{ID: fmt.Sprintf("line %d", line), Err: errors.New("not JSON: " + err.Error())})
			end := nextValue(rest)
			line += bytes.Count(rest[:end], []byte("\n"))
			rest = rest[end:]
			continue
		}
		for _, body := range bodies(value) {
			add(line, body)
		}
		line += bytes.Count(rest[:d.InputOffset()], []byte("\n"))
		rest = rest[d.InputOffset():]
	}
	return out
}

// nextValue is where a later line begins an object or a list; the end if none does.
func nextValue(text []byte) int {
	for at := 0; ; {
		i := bytes.IndexByte(text[at:], '\n')
		if i < 0 {
			return len(text)
		}
		at += i + 1
		if at < len(text) && (text[at] == '{' || text[at] == '[') {
			return at
		}
	}
}

// bodies are the messages in a value: those of a list, of an answer of SQS, or the value itself.
func bodies(value json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(value, &list) == nil {
		var out []json.RawMessage
		for _, item := range list {
			out = append(out, bodies(item)...)
		}
		return out
	}
	var answer struct {
		Messages []json.RawMessage
		Body     *string
	}
	switch err := json.Unmarshal(value, &answer); {
	case err == nil && answer.Messages != nil:
		var out []json.RawMessage
		for _, item := range answer.Messages {
			out = append(out, bodies(item)...)
		}
		return out
	case err == nil && answer.Body != nil:
		return []json.RawMessage{json.RawMessage(*answer.Body)}
	}
	return []json.RawMessage{value}
}
