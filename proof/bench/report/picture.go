//go:build linux

package report

import (
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/leasehold-go/leasehold/proof/bench/contest"
	"github.com/leasehold-go/leasehold/proof/bench/stats"
)

// Picture is a bar chart. Each contender has one bar for each series, for example one for each
// number of clients. The axis is logarithmic, because some values are a hundred times as large
// as others.
type Picture struct {
	Title, Unit string
	Series      []Series
	Rows        []Row
	Limit       float64  // best possible value; zero if unknown
	Missing     []string // lines that name the libraries that were not measured, with the reasons
}

// Series is a set of bars in one colour. The bars show the same figure, one bar for each
// contender.
type Series struct{ Name, Colour string }

// Row contains the bars of one contender, in the order of the series.
type Row struct {
	Name string
	Bars []stats.Spread // one bar for each series; a zero Spread if the contender was not measured
}

// Contention returns a picture of the average time per critical section in the closed loops. There
// is one series for each number of clients.
func Contention(r *contest.Results) Picture {
	return picture(r, Picture{Title: "One key, each client back at once: time per section of 10 ms", Unit: "ms a section"}, "section",
		contending())
}

// Cost returns a picture of the average cost of a critical section. There is one series for a
// single client, and one for each number of contending clients.
func Cost(r *contest.Results) Picture {
	return picture(r, Picture{Title: "Cost of a million sections, on demand in us-east-1", Unit: "dollars a million"}, "dollars",
		append([]source{{Series{"alone", "#a8a8a8"}, "cycle"}}, contending()...))
}

// source is a series of bars, with the name of the table from which its figures come.
type source struct {
	Series
	table string
}

// contending returns one series for each contention scenario with a closed loop. The colours of
// the series differ in brightness, so readers can tell them apart in a black-and-white print.
func contending() []source {
	return []source{
		{Series{"4 clients", "#9ecae1"}, "contention-4-closed"},
		{Series{"16 clients", "#4292c6"}, "contention-16-closed"},
		{Series{"64 clients", "#08519c"}, "contention-64-closed"},
	}
}

func picture(r *contest.Results, p Picture, figure string, sources []source) Picture {
	var limits []float64
	rows := map[string]*Row{}
	for i, from := range sources {
		p.Series = append(p.Series, from.Series)
		t := tableNamed(from.table)
		limits = append(limits, figures(r, t, limitName)[figure]...)
		for _, name := range contenders(r) {
			if rows[name] == nil {
				rows[name] = &Row{Name: name, Bars: make([]stats.Spread, len(sources))}
			}
			rows[name].Bars[i] = stats.Of(figures(r, t, name)[figure])
		}
	}
	p.Limit = stats.Of(limits).Median
	for _, name := range contenders(r) {
		for _, bar := range rows[name].Bars {
			if bar.Runs > 0 {
				p.Rows = append(p.Rows, *rows[name])
				break
			}
		}
	}
	p.Missing = missing(r)
	return p
}

// missing returns a line for each library that took part in no scenario, with the reason.
func missing(r *contest.Results) (lines []string) {
	for _, a := range r.Absent {
		library, _, _ := strings.Cut(a.Contender, ", ")
		line := "not measured: " + library + ": " + a.Reason
		if a.Scenario == "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// Sizes in the units of an SVG picture.
const (
	pictureWidth = 860
	namesWidth   = 210
	valuesWidth  = 70
	barHeight    = 13
	rowGap       = 12
	headHeight   = 62
	footHeight   = 38
	lineHeight   = 16
)

// SVG returns the picture as an SVG document.
func (p Picture) SVG() string {
	low, high := p.bounds()
	right := float64(pictureWidth - valuesWidth)
	x := func(v float64) float64 {
		return namesWidth + (right-namesWidth)*math.Log(v/low)/math.Log(high/low)
	}
	rowHeight := len(p.Series)*barHeight + rowGap
	bottom := headHeight + len(p.Rows)*rowHeight
	height := bottom + footHeight + len(p.Missing)*lineHeight
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12" fill="#1f2328" role="img" aria-label=%q>`+"\n", pictureWidth, height, escaped(p.Title))
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", pictureWidth, height)
	fmt.Fprintf(&b, `<text x="12" y="22" font-size="15" font-weight="bold">%s</text>`+"\n", escaped(p.Title))
	for i, series := range p.Series {
		at := namesWidth + i*110
		fmt.Fprintf(&b, `<rect x="%d" y="36" width="11" height="11" fill="%s"/><text x="%d" y="46">%s</text>`+"\n", at, series.Colour, at+16, escaped(series.Name))
	}
	for tick := low; tick <= high*1.001; tick *= 10 {
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#d0d7de"/><text x="%.1f" y="%d" text-anchor="middle">%g</text>`+"\n",
			x(tick), headHeight-6, x(tick), bottom, x(tick), bottom+16, tick)
	}
	fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="end">%s, median and spread</text>`+"\n", right, bottom+32, escaped(p.Unit))
	for i, row := range p.Rows {
		top := headHeight + i*rowHeight
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", namesWidth-10, top+rowHeight/2, escaped(row.Name))
		for j, bar := range row.Bars {
			y := top + j*barHeight
			middle := float64(y) + (barHeight-2)/2.0
			if bar.Runs == 0 {
				fmt.Fprintf(&b, `<text x="%d" y="%.1f" font-size="10" fill="#6e7781">–</text>`+"\n", namesWidth+4, middle+3.5)
				continue
			}
			fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`, namesWidth, y, max(x(bar.Median)-namesWidth, 1), barHeight-2, p.Series[j].Colour)
			fmt.Fprintf(&b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#1f2328"/>`, x(bar.Low), middle, x(bar.High), middle)
			fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" font-size="10">%s</text>`+"\n", max(x(bar.High), x(bar.Median))+4, middle+3.5, short(bar.Median))
		}
	}
	if p.Limit > 0 {
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#cf222e" stroke-dasharray="4 3"/>`, x(p.Limit), headHeight-6, x(p.Limit), bottom+32)
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" fill="#cf222e" font-size="11">the limit: %s</text>`+"\n", x(p.Limit)+4, bottom+32, short(p.Limit))
	}
	for i, line := range p.Missing {
		fmt.Fprintf(&b, `<text x="12" y="%d" font-size="11">%s</text>`+"\n", bottom+footHeight+i*lineHeight+8, escaped(line))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// bounds returns the range of the axis: a power of ten below all values, and a power of ten
// above all values.
func (p Picture) bounds() (low, high float64) {
	low, high = math.Inf(1), 0.0
	see := func(v float64) {
		if v > 0 {
			low, high = min(low, v), max(high, v)
		}
	}
	see(p.Limit)
	for _, row := range p.Rows {
		for _, bar := range row.Bars {
			see(bar.Low)
			see(bar.High)
		}
	}
	if high == 0 { // no contender has a value
		return 1, 10
	}
	low, high = math.Pow(10, math.Floor(math.Log10(low))), math.Pow(10, math.Ceil(math.Log10(high)))
	if low == high {
		high *= 10
	}
	return low, high
}

// short formats a number with about three significant digits.
func short(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // writing to a Builder cannot fail
	return b.String()
}
