// Package terminal prints the output of the example programs: aligned tables, bars, colours where
// they help, and a progress line for long operations.
package terminal

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// Style says how to print. The zero value is plain text for files and pipes.
type Style struct {
	// Colour allows escape sequences.
	Colour bool
	// Width is the number of columns; 0 means unknown.
	Width int
}

// StyleOf returns the style for a stream: colours on a terminal, unless the environment has
// NO_COLOR or TERM=dumb, and the width of the screen or of COLUMNS.
func StyleOf(w io.Writer) Style {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return Style{}
	}
	s := Style{Colour: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
	if width, _, err := term.GetSize(int(file.Fd())); err == nil {
		s.Width = width
	}
	if width, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && width > 0 {
		s.Width = width
	}
	return s
}

func (s Style) paint(code, text string) string {
	if !s.Colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Bold is for headings and totals.
func (s Style) Bold(text string) string { return s.paint("1", text) }

// Dim is for less important text.
func (s Style) Dim(text string) string { return s.paint("2", text) }

// Good is for things that are in order.
func (s Style) Good(text string) string { return s.paint("32", text) }

// Warn is for things that deserve attention.
func (s Style) Warn(text string) string { return s.paint("33", text) }

// Bad is for things that failed.
func (s Style) Bad(text string) string { return s.paint("31", text) }

// barWidth is the number of cells of a bar.
const barWidth = 10

// narrow is the width below which bars do not fit.
const narrow = 100

// Bar prints a share from 0 to 1 and its percentage: "########..  81%". On a narrow screen it
// prints only the percentage.
func (s Style) Bar(share float64) string {
	share = max(0, min(1, share))
	if s.Width > 0 && s.Width < narrow {
		return fmt.Sprintf("%4s", Percent(share))
	}
	full := int(share*barWidth + 0.5)
	bar := strings.Repeat("#", full) + strings.Repeat(".", barWidth-full)
	switch {
	case share >= 0.7:
		bar = s.Good(bar)
	case share >= 0.4:
		bar = s.Warn(bar)
	default:
		bar = s.Dim(bar)
	}
	return fmt.Sprintf("%s %4s", bar, Percent(share))
}

// Percent formats a share as a percentage, rounded to a whole number: 0.996 is "100%". Tables and
// pages both use it, so they show the same.
func Percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

// Dollars formats a price in dollars, with more digits for small prices.
func Dollars(v float64) string {
	switch {
	case v >= 1000:
		return "$" + grouped(fmt.Sprintf("%.0f", v))
	case v >= 10:
		return fmt.Sprintf("$%.2f", v)
	case v >= 0.1 || v == 0:
		return fmt.Sprintf("$%.3f", v)
	default:
		return fmt.Sprintf("$%.4f", v)
	}
}

// Count formats a whole number with commas between thousands.
func Count(n int) string { return grouped(fmt.Sprint(n)) }

// Plural formats a number of things that get an "s" if there are several: "1 pod", "1,200 pods".
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return Count(n) + " " + what + "s"
}

func grouped(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Duration formats a duration: "0.8 ms", "1.2 s".
func Duration(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%.2g ms", float64(d)/float64(time.Millisecond))
	case d < time.Second:
		return fmt.Sprintf("%.3g ms", float64(d)/float64(time.Millisecond))
	default:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
}

// Progress shows a line on a terminal if the operation takes longer than a second. Calling done
// removes it. In a file or pipe it writes nothing.
func Progress(w io.Writer, what string) (done func()) {
	return ProgressOf(w, func() string { return what })
}

// ProgressOf is [Progress] with a text that changes. It calls what once a second, in its own
// goroutine.
func ProgressOf(w io.Writer, what func() string) (done func()) {
	style := StyleOf(w)
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return func() {}
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		start := time.Now()
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		shown := false
		for {
			select {
			case <-stop:
				if shown {
					fmt.Fprint(w, "\r\x1b[K")
				}
				return
			case <-tick.C:
				shown = true
				fmt.Fprintf(w, "\r\x1b[K%s", style.Dim(fmt.Sprintf("%s ... %.0f s", what(), time.Since(start).Seconds())))
			}
		}
	})
	return func() {
		close(stop)
		wg.Wait()
	}
}
