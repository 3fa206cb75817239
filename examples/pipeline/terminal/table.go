package terminal

import (
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Table collects rows and prints them aligned, without lines, as kubectl does. On a terminal it is
// no wider than the screen: first the space between columns shrinks, then the widest cells are
// broken into lines. If words would have to be broken for that, the last columns go to lines of
// their own below each row, with their headers.
type Table struct {
	screen Style
	header []string
	right  []bool // by column: it is aligned to the right
	rows   [][]string
}

// NewTable starts a table. A header that starts with ">" is for a right-aligned column.
func NewTable(s Style, header ...string) *Table {
	t := &Table{screen: s}
	for _, h := range header {
		name, right := strings.CutPrefix(h, ">")
		t.header, t.right = append(t.header, name), append(t.right, right)
	}
	return t
}

// Row adds a row. It has at most as many cells as the header. Line breaks in cells become spaces.
func (t *Table) Row(cells ...string) {
	row := make([]string, min(len(cells), len(t.header)))
	for i := range row {
		row[i] = strings.ReplaceAll(cells[i], "\n", " ")
	}
	t.rows = append(t.rows, row)
}

// Len returns the number of rows.
func (t *Table) Len() int { return len(t.rows) }

// Write prints the table.
func (t *Table) Write(w io.Writer) error {
	columns, gap := len(t.header), "  "
	natural, least := t.widths()
	widths := natural
	if !t.fits(natural, gap) {
		gap = " "
		if widths = t.shrunk(natural, least); !t.fits(widths, gap) {
			for columns > 0 && !t.fits(natural[:columns], gap) {
				columns--
			}
			widths = natural
		}
	}
	if columns == 0 { // not even the first column
		columns, widths = len(t.header), t.shrunk(natural, make([]int, len(natural)))
	}
	lines := strings.Split(t.render(widths[:columns], gap), "\n")
	var out strings.Builder
	for i, line := range lines {
		out.WriteString(line + "\n")
		if columns < len(t.header) && i > 0 { // each row is one line
			out.WriteString(t.details(t.rows[i-1], columns))
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// widths returns the width of each column, and of its longest word, but at least [leastWidth] if
// the column is that wide.
func (t *Table) widths() (natural, least []int) {
	for i, h := range t.header {
		n, word := text.StringWidthWithoutEscSequences(h), 0
		for _, cells := range t.rows {
			if i < len(cells) {
				n = max(n, text.StringWidthWithoutEscSequences(cells[i]))
			}
		}
		for _, cells := range append([][]string{t.header}, t.rows...) {
			if i < len(cells) {
				for part := range strings.FieldsSeq(cells[i]) {
					word = max(word, text.StringWidthWithoutEscSequences(part))
				}
			}
		}
		natural, least = append(natural, n), append(least, max(word, min(n, leastWidth)))
	}
	return natural, least
}

// fits reports whether columns of these widths fit the screen.
func (t *Table) fits(widths []int, gap string) bool {
	sum := len(gap) * (len(widths) - 1)
	for _, w := range widths {
		sum += w
	}
	return t.screen.Width == 0 || sum <= t.screen.Width
}

// shrunk returns the widths with the widest columns narrowed until they fit the screen, but none
// below its least width.
func (t *Table) shrunk(natural, least []int) []int {
	out := slices.Clone(natural)
	for !t.fits(out, " ") {
		widest := -1
		for i, w := range out {
			if w > max(1, least[i]) && (widest < 0 || w > out[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		out[widest]--
	}
	return out
}

// render prints the first columns in the given widths.
func (t *Table) render(widths []int, gap string) string {
	w := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", gap
	style.Format.Header = text.FormatDefault
	w.SetStyle(style)
	w.SuppressTrailingSpaces()
	var configs []table.ColumnConfig
	var header table.Row
	for i, width := range widths {
		align := text.AlignLeft
		if t.right[i] {
			align = text.AlignRight
		}
		configs = append(configs, table.ColumnConfig{Number: i + 1, Align: align, AlignHeader: align, WidthMax: width, WidthMaxEnforcer: text.WrapSoft})
		header = append(header, t.screen.Bold(t.header[i]))
	}
	w.SetColumnConfigs(configs)
	w.AppendHeader(header)
	for _, cells := range t.rows {
		var row table.Row
		for _, c := range cells[:min(len(cells), len(widths))] {
			row = append(row, c)
		}
		w.AppendRow(row)
	}
	return w.Render()
}

// details prints the cells from a column on, each with its header, below their row. A cell that
// does not fit the line begins the next one.
func (t *Table) details(cells []string, from int) string {
	const indent, gap = "    ", "  "
	room := max(leastWidth, t.screen.Width-len(indent))
	var lines []string
	for i := from; i < len(cells); i++ {
		if cells[i] == "" {
			continue
		}
		cell := t.screen.Bold(t.header[i]) + " " + strings.TrimSpace(cells[i])
		if n := len(lines); n > 0 && text.StringWidthWithoutEscSequences(lines[n-1]+gap+cell) <= room {
			lines[n-1] += gap + cell
		} else {
			lines = append(lines, strings.Split(text.WrapSoft(cell, room), "\n")...)
		}
	}
	var out strings.Builder
	for _, line := range lines {
		out.WriteString(indent + strings.TrimRight(line, " ") + "\n")
	}
	return out.String()
}

// leastWidth is the minimum width of a column that is not narrower by itself.
const leastWidth = 8
