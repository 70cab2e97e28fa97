//go:build linux

package report

import (
	"slices"
	"strings"

	"github.com/leasehold-go/leasehold/proof/bench/contest"
	"github.com/leasehold-go/leasehold/proof/bench/stats"
)

// Summary returns the first table of performance.md. Each library has one column: the results of
// its default settings, or of its tuned settings if the default settings were not measured. Each
// cell contains the medians of the closed loops, one for each number of clients.
func Summary(r *contest.Results) string {
	rows := []struct {
		name    string
		figures []string // figures whose sum the row shows
		digits  int
	}{
		{"ms a section", []string{"section"}, 0},
		{"write and read units", []string{"writes", "reads"}, 0},
		{"longest wait, s", []string{"longest"}, 1},
	}
	table := [][]string{{"among " + among()}}
	for _, row := range rows {
		table = append(table, []string{row.name})
	}
	var shown []string
	for _, name := range append(contenders(r), limitName) {
		takes := medians(r, name, rows[0].figures, rows[0].digits)
		if base, isTuned := strings.CutSuffix(name, ", tuned"); takes == "" || isTuned && slices.Contains(shown, base) {
			continue
		}
		shown = append(shown, name)
		table[0] = append(table[0], name)
		for i, row := range rows {
			table[i+1] = append(table[i+1], medians(r, name, row.figures, row.digits))
		}
	}
	return aligned(table, true)
}

func among() string {
	var names []string
	for _, from := range contending() {
		names = append(names, strings.TrimSuffix(from.Name, " clients"))
	}
	return strings.Join(names, " · ") + " clients"
}

// medians returns one cell of the summary: for each number of clients, the median over a
// contender's runs. The value of a run is the sum of the figures that are named in the parameter
// "of". medians returns "" if nothing was measured.
func medians(r *contest.Results, contender string, of []string, digits int) string {
	var cells []string
	measured := false
	for _, from := range contending() {
		f := figures(r, tableNamed(from.table), contender)
		sums := slices.Clone(f[of[0]])
		for _, more := range of[1:] {
			for i, v := range f[more] {
				sums[i] += v
			}
		}
		if len(sums) == 0 {
			cells = append(cells, "–")
			continue
		}
		measured = true
		cells = append(cells, number(stats.Of(sums).Median, digits))
	}
	if !measured {
		return ""
	}
	return strings.Join(cells, " · ")
}
