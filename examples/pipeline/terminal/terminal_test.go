package terminal_test

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
)

func TestFilesAndPipesArePlain(t *testing.T) {
	assert.Equal(t, terminal.Style{}, terminal.StyleOf(&bytes.Buffer{}))
	file, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	assert.Equal(t, terminal.Style{}, terminal.StyleOf(file))
}

func TestBar(t *testing.T) {
	for share, want := range map[float64]string{0: "..........   0%", 0.5: "#####.....  50%", 0.94: "#########.  94%", 1: "########## 100%", 7: "########## 100%", -1: "..........   0%"} {
		assert.Equal(t, want, terminal.Style{}.Bar(share))
	}
}

func TestColours(t *testing.T) {
	assert.Equal(t, "\x1b[32mx\x1b[0m", terminal.Style{Colour: true}.Good("x"))
	assert.Equal(t, "x", terminal.Style{}.Good("x"))
	assert.Empty(t, terminal.Style{Colour: true}.Bold(""))
}

func TestUnits(t *testing.T) {
	for v, want := range map[float64]string{0: "$0.000", 0.0098: "$0.0098", 0.3456: "$0.346", 12.5: "$12.50", 3030.9: "$3,031", 1234567: "$1,234,567"} {
		assert.Equal(t, want, terminal.Dollars(v))
	}
	assert.Equal(t, "100,000", terminal.Count(100000))
	assert.Equal(t, "999", terminal.Count(999))
	for d, want := range map[time.Duration]string{800 * time.Microsecond: "0.8 ms", 28700 * time.Microsecond: "28.7 ms", 1200 * time.Millisecond: "1.2 s"} {
		assert.Equal(t, want, terminal.Duration(d))
	}
}

func TestProgressIsSilentInPipes(t *testing.T) {
	var out bytes.Buffer
	done := terminal.Progress(&out, "working")
	done()
	assert.Empty(t, out.String())
}

func ExampleNewTable() {
	t := terminal.NewTable(terminal.Style{}, "NODE", ">PODS")
	t.Row("default-0", "9")
	t.Row("spot-10", "12")
	if err := t.Write(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// NODE       PODS
	// default-0     9
	// spot-10      12
}

func ExampleStyle_Bar() {
	fmt.Println(terminal.Style{}.Bar(0.8))
	// Output: ########..  80%
}

func TestTablesFitTheScreen(t *testing.T) {
	for _, width := range []int{0, 40, 60, 80, 200} {
		s := terminal.Style{Width: width, Colour: width == 60}
		table := terminal.NewTable(s, "NODE", "POOL", ">PRICE/H", "CPU", "WHY IT STAYS")
		table.Row("default-0", "default", "$0.113", s.Bar(0.83), strings.TrimSpace(strings.Repeat("do-not-disrupt keeps it ", 4)))
		table.Row("spot-0", "spot", "$0.0768", s.Bar(0.96), s.Warn("nothing"))
		var out bytes.Buffer
		require.NoError(t, table.Write(&out))
		plain := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(out.String(), "")
		for line := range strings.Lines(plain) {
			if width > 0 {
				assert.LessOrEqual(t, len(strings.TrimRight(line, "\n")), width, plain)
			}
		}
		assert.Equal(t, 4, strings.Count(strings.Join(strings.Fields(plain), ""), "disruptkeepsit"), plain)
		assert.Equal(t, width == 0 || width >= 100, strings.Contains(plain, "#"), plain)
	}
}

// Where words would have to be broken, the last columns are below their rows, and nothing is lost.
func TestColumnsThatDoNotFitAreBelowTheirRows(t *testing.T) {
	for _, width := range []int{30, 50, 80} {
		s := terminal.Style{Width: width, Colour: width == 50}
		table := terminal.NewTable(s, "NODE", "TYPE", ">PRICE/H", "DAEMONS", "HOLDS")
		table.Row("default-0", "c6gd.2xlarge", "$0.113", "kube-system/log-agent-of-all-nodes", "shop/web-7d4b9c, shop/db")
		table.Row("spot-0", "m6g.xlarge", "$0.0768", "", "batch/report-of-a-name x5")
		table.Row("spot-1", "m6g.\nxlarge", "$0.0768", "", "two\nlines") // a line break does not move what is below a row
		var out bytes.Buffer
		require.NoError(t, table.Write(&out))
		plain := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(out.String(), "")
		for line := range strings.Lines(plain) {
			assert.LessOrEqual(t, len(strings.TrimRight(line, "\n")), width, plain)
		}
		words := strings.Fields(plain)
		for _, word := range []string{"c6gd.2xlarge", "$0.0768", "shop/web-7d4b9c,", "batch/report-of-a-name"} {
			assert.Contains(t, words, word, plain)
		}
		assert.Contains(t, strings.Join(words, ""), "kube-system/log-agent-of-all-nodes", plain)
		assert.NotContains(t, plain, "DAEMONS  HOLDS", "a cell that is empty has no header")
	}
}
