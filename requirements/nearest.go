package requirements

import "strings"

// Nearest returns the candidate that a mistyped word most probably meant, for "did you mean". A
// candidate is close enough if at most a third of the letters of word differ, and at most three
// letters. One differing letter is always close enough. Differences of case do not count. Ties go
// to the first candidate. A candidate that equals word is skipped. The second result is false if no
// candidate is close enough.
func Nearest(word string, candidates []string) (string, bool) {
	limit := min(3, max(1, len(word)/3))
	best, found := "", false
	for _, c := range candidates {
		if c == word {
			continue
		}
		d := editDistance(strings.ToLower(word), strings.ToLower(c), limit)
		if d <= limit && (!found || d < editDistance(strings.ToLower(word), strings.ToLower(best), limit)) {
			best, found = c, true
		}
	}
	return best, found
}

// editDistance counts the insertions, deletions, replacements and swaps of neighbours (optimal
// string alignment) that turn a into b. It returns limit+1 for anything above limit.
func editDistance(a, b string, limit int) int {
	if max(len(a), len(b))-min(len(a), len(b)) > limit {
		return limit + 1
	}
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		row, last, beforeLast := rows[i%3], rows[(i-1)%3], rows[(i+1)%3]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], beforeLast[j-2]+1)
			}
		}
	}
	return min(rows[len(a)%3][len(b)], limit+1)
}
