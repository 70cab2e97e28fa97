//go:build linux

package report

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/proof/bench/contest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The function "three" returns the results of three rounds of the scenario contention-4. One
// contender failed in one round. Two other contenders did not take part.
func three() *contest.Results {
	r := &contest.Results{
		Began: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC), Took: time.Minute, Engine: "an engine", Distance: 5 * time.Millisecond, Rounds: 3,
		Contenders: []contest.Described{{Name: "ours", Version: "this", How: "as it is"}, {Name: "a rival", Version: "1", How: "as it is"}},
		Absent: []contest.Absence{
			{Contender: "nobody's", Reason: "it cannot be installed"},
			{Scenario: "contention-4", Contender: "a third", Reason: "it <does> not wait"},
		},
	}
	for round, section := range []float64{26, 24, 90} {
		r.Runs = append(r.Runs, contest.Run{
			Round: round + 1, Scenario: "contention-4", Contender: "ours", RoundTrip: float64(6 + round),
			Tables: map[string]contest.Figures{"contention-4-closed": {"section": section, "jain": 1, "dollars": 2}},
		})
	}
	r.Runs = append(r.Runs,
		contest.Run{Round: 1, Scenario: "contention-4", Contender: "a rival", RoundTrip: 6, Tables: map[string]contest.Figures{"contention-4-closed": {"section": 800}}},
		contest.Run{Round: 2, Scenario: "contention-4", Contender: "a rival", Failed: "it fell over\nand said much more"})
	return r
}

func TestReportShowsMediansRangesAndTheoreticalLimit(t *testing.T) {
	text := squeezed(Text(three()))
	contains(t, text,
		"### 4 clients, closed loop",
		"| ours | 26.0 (24.0–90.0) |",
		"| a rival | 800.0 |",
		"| the limit | 23.0 (22.0–26.0) |", // 10 ms of work plus two round trips; a round trip took 6, 7 and 8 ms in our runs, and 6 ms in the rival's run
		"- nobody's: it cannot be installed",
		"- a third: it <does> not wait",
		"- a rival: a run failed: it fell over\n",
		"| runs of each | 3 |",
	)
	for _, other := range []string{"16 clients", "said much more"} {
		lab.Want(t, "report contains "+other, strings.Contains(text, other), false)
	}
}

// contains fails the test unless the text contains each of parts.
func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("the text lacks %q:\n%s", part, text)
		}
	}
}

func TestBenchmarkReportWarnsIfMachineWasBusy(t *testing.T) {
	const busy = "The machine was busy"
	r := three()
	lab.Want(t, "report says that an idle machine was busy", strings.Contains(Text(r), busy), false)
	for i := range r.Runs {
		r.Runs[i].Others = 0.5
	}
	lab.Want(t, "report warns that other programs used half of the machine", strings.Contains(Text(r), busy), true)
}

// squeezed replaces each run of spaces in text with one space, so that the tests need not know the
// widths of table columns.
func squeezed(text string) string {
	for strings.Contains(text, "  ") {
		text = strings.ReplaceAll(text, "  ", " ")
	}
	return text
}

func TestChartHasBarsOnlyForMeasuredResults(t *testing.T) {
	p := Contention(three())
	if len(p.Rows) != 2 || p.Rows[0].Bars[0].Median != 26 || p.Rows[0].Bars[1].Runs != 0 || p.Limit != 23 {
		t.Fatalf("%+v", p)
	}
	svg := p.SVG()
	boxes := func(series int) int { return strings.Count(svg, `fill="`+p.Series[series].Colour+`"`) }
	lab.Want(t, "boxes of the first colour", boxes(0), 3)  // the bars of two contenders, and the legend
	lab.Want(t, "boxes of the second colour", boxes(1), 1) // only the legend, because no contender played with 16 clients
	contains(t, svg, ">26.0<", ">800<", "the limit: 23.0", ">10<", ">1000<")
	wellFormed(t, svg)
}

func TestChartExplainsWhyLibraryWasNotMeasured(t *testing.T) {
	r := three()
	r.Absent = append(r.Absent, contest.Absence{Contender: "nobody's, tuned", Reason: "it cannot be installed"})
	svg := Contention(r).SVG()
	wellFormed(t, svg)
	lab.Want(t, "lines with this reason", strings.Count(svg, ">not measured: nobody&#39;s: it cannot be installed<"), 1)
	lab.Want(t, "chart names a library that was left out of only one scenario", strings.Contains(svg, "a third"), false)
}

func TestChartIsWellFormedXML(t *testing.T) {
	wellFormed(t, Cost(&contest.Results{}).SVG())
	r := three()
	r.Contenders[0].Name = `<"&`
	for i := range r.Runs {
		if r.Runs[i].Contender == "ours" {
			r.Runs[i].Contender = `<"&`
		}
	}
	wellFormed(t, Contention(r).SVG())
}

func wellFormed(t *testing.T, svg string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
	}
}

func TestPublishReplacesOnlyTextBetweenMarkers(t *testing.T) {
	docs := filepath.Join(t.TempDir(), "docs", "internals")
	lab.OK(t, os.MkdirAll(docs, 0o700))
	write := func(name, text string) {
		lab.OK(t, os.WriteFile(filepath.Join(docs, name), []byte(text), 0o600))
	}
	write(page, "by hand\n"+begin+"old\n"+end+"by hand, too\n")
	for range 2 { // the second round of this loop replaces the text that the first round wrote
		lab.OK(t, Publish(docs, three()))
		text := string(lab.Must(os.ReadFile(filepath.Join(docs, page)))(t))
		if !strings.HasPrefix(text, "by hand\n"+begin) || !strings.HasSuffix(text, end+"by hand, too\n") || strings.Contains(text, "old\n") ||
			strings.Count(text, "### 4 clients") != 1 || strings.Count(text, "among 4 ") != 1 {
			t.Errorf("the page is\n%s", text)
		}
	}
	for _, name := range []string{contended, costs} {
		wellFormed(t, string(lab.Must(os.ReadFile(filepath.Join(docs, name)))(t)))
	}
	write(page, "without marks\n")
	lab.WantFailed(t, "Publish on a page without marks", Publish(docs, three()))
}

func TestSummaryShowsMediansAndTheoreticalLimit(t *testing.T) {
	r := three()
	r.Runs[0].Tables["contention-4-closed"]["writes"] = 2
	r.Runs[0].Tables["contention-4-closed"]["reads"] = 3.2
	for name, section := range map[string]float64{"a rival, tuned": 25, "another, tuned": 30} {
		r.Runs = append(r.Runs, contest.Run{Scenario: "contention-4", Contender: name, RoundTrip: 7, Tables: map[string]contest.Figures{"contention-4-closed": {"section": section}}})
	}
	r.Contenders = append(r.Contenders, contest.Described{Name: "a rival, tuned"}, contest.Described{Name: "another, tuned"})
	contains(t, squeezed(Summary(r)),
		"| among 4 · 16 · 64 clients | ours | a rival | another, tuned | the limit |",
		"| ms a section | 26 · – · – | 800 · – · – | 30 · – · – | 24 · – · – |",
		"| write and read units | 5 · – · – | | | 2 · – · – |",
	)
}

func TestBenchmarkResultsAreReadBackAsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.json")
	lab.OK(t, Write(path, three()))
	lab.Want(t, "report", lab.Must(Read(path))(t), three())
}
