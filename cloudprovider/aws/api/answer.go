package api

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"

	"github.com/joinery-sdk/joinery/cloudprovider"
)

// The levels at which AWS reports an error.
const (
	// Call: the whole call failed.
	Call = "call"
	// State: why a machine ended by itself.
	State = "state"
	// Entry: one entry of the errors of a fleet that was answered.
	Entry = "entry"
)

// Answer is one row of the answer book, answers.yaml: an error code of AWS, what it means and what
// follows from it.
type Answer struct {
	Code string `json:"code"`
	// Match is a part of the message, in lower case, that distinguishes this meaning of the code
	// from others.
	Match string `json:"match,omitempty"`
	// Level is [Call], [Entry], "both", or "state" for the reason why a machine ended.
	Level string `json:"level"`
	// Status is the HTTP status of a call that fails with this code.
	Status int `json:"status,omitempty"`
	// Class is the text of a sentinel of package cloudprovider, or "unknown".
	Class string `json:"class"`
	// Forget lists what must be looked up again: image, subnet, group, profile, template,
	// placement, reservation.
	Forget []string `json:"forget,omitempty"`
	// Blame is what a ledger records: "offering", "spot", "vcpus" for the quota of the offering's
	// families, "placement" for its placement group, or a quota's name. Empty means none of them.
	Blame string `json:"blame,omitempty"`
	// Cure is what a person can do about it.
	Cure string `json:"cure,omitempty"`
	// Message is AWS's message, as far as it is known.
	Message string `json:"message,omitempty"`
	// Source is where the code is documented or was reported.
	Source string `json:"source"`
	// Seen is the day on which the opt-in suite got it from AWS.
	Seen string `json:"seen,omitempty"`
}

//go:embed answers.yaml
var answerBook []byte

var readBook = sync.OnceValues(func() ([]Answer, error) {
	var book struct {
		Sources map[string]string `json:"sources"`
		Answers []Answer          `json:"answers"`
	}
	if err := yaml.UnmarshalStrict(answerBook, &book); err != nil {
		return nil, fmt.Errorf("api: answers.yaml: %w", err)
	}
	for i := range book.Answers {
		a := &book.Answers[i]
		source, ok := book.Sources[a.Source]
		if _, known := sentinel(a.Class); !ok || !known {
			return nil, fmt.Errorf("api: answers.yaml: %s: no source %q or no class %q", a.Code, a.Source, a.Class)
		}
		a.Source = source
	}
	// A row that matches the message comes before a row that matches only the code.
	slices.SortStableFunc(book.Answers, func(a, b Answer) int { return strings.Compare(b.Match, a.Match) })
	return book.Answers, nil
})

// Answers returns the rows of the answer book in a new slice. Rows with a Match come before those
// that match a code alone. The error says that the embedded file is broken.
func Answers() ([]Answer, error) {
	list, err := readBook()
	return slices.Clone(list), err
}

// sentinel returns the error of a class, or nil for unknown.
func sentinel(class string) (error, bool) {
	for _, code := range cloudprovider.Codes() {
		if code.Error() == class {
			return code, true
		}
	}
	return nil, class == "unknown"
}

// Err returns the sentinel of the class. nil means that it is not known whether something was done.
func (a Answer) Err() error {
	err, _ := sentinel(a.Class)
	return err
}

// Find returns the row of a code at a level. If the code is not listed, the level decides. An entry
// of a fleet means ErrInsufficientCapacity, with the offering to blame. A call is judged by its
// HTTP status: 401 and 403 mean ErrUnauthorized, and 429 means ErrThrottled. Any other 4xx means
// ErrInvalidSpec: the call can never succeed. Otherwise, also without a status, the outcome is
// unknown.
func Find(level, code, message string, status int) Answer {
	list, _ := readBook() // a test reads it
	bare, lower := strings.TrimPrefix(strings.TrimPrefix(code, "Client."), "Server."), strings.ToLower(message)
	for _, a := range list {
		if (a.Code == bare || a.Code == code) && (a.Level == level || a.Level == "both" && level != State) && strings.Contains(lower, a.Match) {
			return a
		}
	}
	a := Answer{Code: code, Level: level, Status: status, Class: cloudprovider.ErrInvalidSpec.Error()}
	switch {
	case level == Entry:
		a.Class, a.Blame = cloudprovider.ErrInsufficientCapacity.Error(), "offering"
	case status == 401 || status == 403:
		a.Class = cloudprovider.ErrUnauthorized.Error()
	case status == 429:
		a.Class = cloudprovider.ErrThrottled.Error()
	case status < 400 || status >= 500:
		a.Class = "unknown"
	}
	return a
}
