// Package launch writes the requests that buy machines: launch templates named after their content,
// and fleets. All functions are pure and make no calls.
package launch
