package terminal

import (
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Table collects rows and draws them aligned, without lines, as kubectl does.
type Table struct {
	w    table.Writer
	rows int
}

// NewTable starts a table; a header that starts with ">" is of a column aligned to the right.
func NewTable(s Style, header ...string) *Table {
	t := &Table{w: table.NewWriter()}
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	style.Format.Header = text.FormatDefault
	t.w.SetStyle(style)
	var configs []table.ColumnConfig
	row := table.Row{}
	for i, h := range header {
		align := text.AlignLeft
		if h != "" && h[0] == '>' {
			h, align = h[1:], text.AlignRight
		}
		configs = append(configs, table.ColumnConfig{Number: i + 1, Align: align, AlignHeader: align})
		row = append(row, s.Bold(h))
	}
	t.w.SetColumnConfigs(configs)
	t.w.AppendHeader(row)
	t.w.SuppressTrailingSpaces()
	return t
}

// Row adds a row.
func (t *Table) Row(cells ...string) {
	row := table.Row{}
	for _, c := range cells {
		row = append(row, c)
	}
	t.w.AppendRow(row)
	t.rows++
}

// Len is the number of rows.
func (t *Table) Len() int { return t.rows }

// Write draws the table.
func (t *Table) Write(w io.Writer) error {
	_, err := io.WriteString(w, t.w.Render()+"\n")
	return err
}
