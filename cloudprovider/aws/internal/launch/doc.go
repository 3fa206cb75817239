// Package launch writes the requests that buy machines: launch templates named by their content, and fleets. Everything is a
// function of its arguments; nothing is called.
package launch
