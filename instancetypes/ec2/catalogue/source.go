package catalogue

import "strings"

// Source is a package that the data was taken from.
type Source struct {
	Letter  string // its name in the data
	Package string
	Version string
	Hash    string // of the package, as its package manager computes it
	Date    string // of the data, YYYY-MM-DD; empty if the package does not say
	Gives   string // what was taken from it
}

// Sources returns where the data comes from.
func Sources() []Source {
	var out []Source
	for l := range lines("sources.txt") {
		f := strings.Split(l, "\t")
		if len(f) == 6 {
			out = append(out, Source{f[0], f[1], f[2], f[3], f[4], f[5]})
		}
	}
	return out
}

// sourceDate returns the date of a source.
func sourceDate(letter string) string {
	for _, s := range Sources() {
		if s.Letter == letter {
			return s.Date
		}
	}
	return ""
}
