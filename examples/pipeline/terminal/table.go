package terminal

import (
	"io"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Table collects rows and prints them aligned, without lines, as kubectl does. On a terminal it is
// no wider than the screen: first the space between columns shrinks, then the widest cells are
// broken into lines.
type Table struct {
	w       table.Writer
	width   int // of the screen; 0 means unknown
	style   table.Style
	configs []table.ColumnConfig
	widest  []int // by column
	rows    int
}

// NewTable starts a table. A header that starts with ">" is for a right-aligned column.
func NewTable(s Style, header ...string) *Table {
	t := &Table{w: table.NewWriter(), width: s.Width}
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	style.Format.Header = text.FormatDefault
	t.style = style
	row := table.Row{}
	for i, h := range header {
		align := text.AlignLeft
		if h != "" && h[0] == '>' {
			h, align = h[1:], text.AlignRight
		}
		t.configs = append(t.configs, table.ColumnConfig{Number: i + 1, Align: align, AlignHeader: align})
		t.widest = append(t.widest, text.StringWidthWithoutEscSequences(h))
		row = append(row, s.Bold(h))
	}
	t.w.AppendHeader(row)
	t.w.SuppressTrailingSpaces()
	return t
}

// Row adds a row.
func (t *Table) Row(cells ...string) {
	row := table.Row{}
	for i, c := range cells {
		row = append(row, c)
		if i < len(t.widest) {
			t.widest[i] = max(t.widest[i], text.StringWidthWithoutEscSequences(c))
		}
	}
	t.w.AppendRow(row)
	t.rows++
}

// Len returns the number of rows.
func (t *Table) Len() int { return t.rows }

// Write prints the table.
func (t *Table) Write(w io.Writer) error {
	style, configs := t.style, slices.Clone(t.configs)
	widths, gap := slices.Clone(t.widest), len(style.Box.PaddingRight)
	excess := func() int {
		if t.width == 0 {
			return 0
		}
		sum := gap * (len(widths) - 1)
		for _, w := range widths {
			sum += w
		}
		return sum - t.width
	}
	if excess() > 0 {
		style.Box.PaddingRight, gap = " ", 1
	}
	for excess() > 0 {
		most := slices.Index(widths, slices.Max(widths))
		if widths[most] <= leastWidth {
			break // the screen is too narrow for all columns
		}
		widths[most]--
		configs[most].WidthMax, configs[most].WidthMaxEnforcer = widths[most], text.WrapSoft
	}
	t.w.SetStyle(style)
	t.w.SetColumnConfigs(configs)
	_, err := io.WriteString(w, t.w.Render()+"\n")
	return err
}

// leastWidth is the minimum width of a column.
const leastWidth = 8
