//go:build linux

package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/leasehold-go/leasehold/proof/bench/contest"
	"github.com/leasehold-go/leasehold/proof/bench/stats"
)

// limitName is the name of the table row that shows the best possible figures.
const limitName = "the limit"

// Table returns a table in Markdown. It shows, for each contender, the median and the range
// of each figure over all runs.
func Table(r *contest.Results, t contest.Table) string {
	rows := [][]string{append([]string{""}, headings(t)...)}
	for _, name := range append(contenders(r), limitName) {
		measured := figures(r, t, name)
		row := []string{name}
		for _, column := range t.Columns {
			row = append(row, cell(measured[column.Figure], column.Digits))
		}
		if slices.ContainsFunc(row[1:], func(cell string) bool { return cell != "" }) {
			rows = append(rows, row)
		}
	}
	return "### " + t.Title + "\n\n" + t.Note + "\n\n" + aligned(rows, true)
}

func headings(t contest.Table) (headings []string) {
	for _, c := range t.Columns {
		headings = append(headings, c.Heading)
	}
	return headings
}

// tableNamed returns the table with the given name, or the zero Table if there is none.
func tableNamed(name string) contest.Table {
	for _, s := range contest.Scenarios() {
		for _, t := range s.Tables {
			if t.Name == name {
				return t
			}
		}
	}
	return contest.Table{}
}

func contenders(r *contest.Results) (names []string) {
	for _, c := range r.Contenders {
		names = append(names, c.Name)
	}
	return names
}

// figures returns, for each figure of the table, the values from all runs of the contender. If
// contender is limitName, it returns the best possible values instead.
func figures(r *contest.Results, t contest.Table, contender string) map[string][]float64 {
	measured := map[string][]float64{}
	for _, run := range r.Runs {
		one, played := run.Tables[t.Name]
		switch {
		case !played:
			continue
		case contender == limitName:
			one = t.Limit(run.RoundTrip)
		case run.Contender != contender:
			continue
		}
		for figure, value := range one {
			measured[figure] = append(measured[figure], value)
		}
	}
	return measured
}

// cell formats the median of the measurements with their range. It omits the range if all
// measurements are equal.
func cell(measured []float64, digits int) string {
	if len(measured) == 0 {
		return ""
	}
	s := stats.Of(measured)
	median, low, high := number(s.Median, digits), number(s.Low, digits), number(s.High, digits)
	if low == high {
		return median
	}
	return fmt.Sprintf("%s (%s–%s)", median, low, high)
}

func number(v float64, digits int) string { return strconv.FormatFloat(v, 'f', digits, 64) }

// aligned returns rows as a Markdown table with aligned columns. If numbers is true, all
// columns after the first are aligned to the right.
func aligned(rows [][]string, numbers bool) string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	var b strings.Builder
	line := func(row []string) {
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-len([]rune(cell)))
			if i == 0 || !numbers {
				fmt.Fprintf(&b, "| %s%s ", cell, pad)
			} else {
				fmt.Fprintf(&b, "| %s%s ", pad, cell)
			}
		}
		b.WriteString("|\n")
	}
	line(rows[0])
	for i, width := range widths {
		dashes := strings.Repeat("-", width)
		if i == 0 || !numbers {
			fmt.Fprintf(&b, "|-%s-", dashes)
		} else {
			fmt.Fprintf(&b, "|-%s:", dashes)
		}
	}
	b.WriteString("|\n")
	for _, row := range rows[1:] {
		line(row)
	}
	return b.String()
}

// Text returns all tables of the results in Markdown.
func Text(r *contest.Results) string {
	parts := []string{how(r)}
	for _, s := range contest.Scenarios() {
		for _, t := range s.Tables {
			played := func(run contest.Run) bool { return run.Tables[t.Name] != nil }
			if slices.ContainsFunc(r.Runs, played) {
				parts = append(parts, Table(r, t))
			}
		}
		played := func(run contest.Run) bool { return run.Scenario == s.Name }
		if left := leftOut(r, s.Name); left != "" && slices.ContainsFunc(r.Runs, played) {
			parts = append(parts, left)
		}
	}
	return strings.Join(parts, "\n")
}

// The function "how" returns a paragraph about the contest and the machine on which it ran.
func how(r *contest.Results) string {
	var others, trips []float64
	for _, run := range r.Runs {
		others, trips = append(others, 100*run.Others), append(trips, run.RoundTrip)
	}
	rows := [][]string{
		{"what", "which"},
		{"when", r.Began.Format("2006-01-02 15:04 UTC") + ", for " + r.Took.String()},
		{"machine", fmt.Sprintf("%d × %s, %s, Linux %s", r.Machine.Processors, r.Machine.Processor, r.Machine.Memory, r.Machine.Kernel)},
		{"in use by others before a run, %", cell(others, 0)},
		{"engine", r.Engine + ", " + r.Distance.String() + " away"},
		{"one round trip, ms", cell(trips, 1)},
		{"runs of each", strconv.Itoa(r.Rounds)},
		{"ours", "built with " + r.Machine.Go},
	}
	players := [][]string{{"contender", "version", "set"}}
	for _, c := range r.Contenders {
		players = append(players, []string{c.Name, c.Version, c.How})
	}
	text := aligned(rows, false) + "\n" + aligned(players, false)
	if used := stats.Of(others).Median; used > 10 {
		text += fmt.Sprintf("\n**The machine was busy with other things**: they had %.0f %% of it. Times say little then; counts and units do.\n", used)
	}
	if left := leftOut(r, ""); left != "" {
		text += "\n" + left
	}
	return text
}

// leftOut lists the contenders that did not take part in the scenario, with the reasons,
// and the runs that failed.
func leftOut(r *contest.Results, scenario string) string {
	var b strings.Builder
	seen := map[string]bool{}
	say := func(who, why string) {
		line := "- " + who + ": " + why + "\n"
		if !seen[line] {
			seen[line] = true
			b.WriteString(line)
		}
	}
	for _, a := range r.Absent {
		if a.Scenario == scenario {
			say(a.Contender, a.Reason)
		}
	}
	for _, run := range r.Runs {
		if run.Scenario == scenario && run.Failed != "" {
			first, _, _ := strings.Cut(run.Failed, "\n")
			say(run.Contender, fmt.Sprintf("a run failed: %s", first))
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "Left out:\n\n" + b.String()
}
