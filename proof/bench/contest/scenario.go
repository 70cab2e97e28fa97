//go:build linux

package contest

import (
	"context"
	"fmt"
	"time"
)

// Scenario is what is played.
type Scenario struct {
	Name   string
	Tables []Table

	clients int           // that contend, hold or wait: what a contender is tuned to
	kind    kind          // what a contender may not take part in
	takes   time.Duration // about how long, with the start of its processes
	// together: all contenders play at once, since they do next to nothing but wait.
	together bool
	play     func(context.Context, *stage) (map[string]Figures, error)
}

// kind is what a scenario is about.
type kind int

const (
	cycling kind = iota
	contending
	sharing // one client among several callers
	waiting
	takingOver
	holding
)

// Table is one table of figures.
type Table struct {
	Name    string
	Title   string
	Columns []Column
	Note    string
	// limit is what cannot be beaten, by a round trip in ms. nil: nothing is known.
	limit func(roundTrip float64) Figures
}

// Column is one figure of each contender.
type Column struct {
	Figure, Heading string
	Digits          int // after the point
}

// The columns that several tables have.
var (
	perSection = []Column{
		{"requests", "requests", 1}, {"writes", "write units", 1}, {"reads", "read units", 1}, {"dollars", "$ per million", 2},
	}
	contention = append([]Column{
		{"section", "ms a section", 1}, {"handover50", "hand-over p50, ms", 1}, {"handover99", "p99, ms", 1},
		{"longest", "longest wait, s", 2}, {"overtaken", "most overtakings", 0}, {"jain", "Jain's index", 2},
	}, append(perSection, busy)...)
	open = append([]Column{
		{"served", "% served", 0}, {"wait50", "wait p50, ms", 1}, {"wait99", "p99, ms", 0},
		{"longest", "longest, s", 2}, {"overtaken", "most overtakings", 0},
	}, append(perSection, busy)...)
	busy = Column{"busy", "% of the machine", 0}
)

// hold is how long a section of those that contend lasts.
const hold = 10 * time.Millisecond

// openRate is how many sections a second are due in an open loop, whoever contends:
// a bit more than half of what the limit allows.
const openRate = 25

// Scenarios returns all there are, in the order in which they are played and shown.
func Scenarios() []Scenario {
	all := []Scenario{cycle()}
	for _, clients := range []int{4, 16, 64} {
		all = append(all, contend(clients))
	}
	return append(all, localLine(16), longHold(), takeover(), heldLocks(1000), heldLocks(10_000))
}

// Find returns the scenarios of those names, all of none.
func Find(names ...string) ([]Scenario, error) {
	if len(names) == 0 {
		return Scenarios(), nil
	}
	var found []Scenario
	for _, name := range names {
		n := len(found)
		for _, s := range Scenarios() {
			if s.Name == name {
				found = append(found, s)
			}
		}
		if len(found) == n {
			return nil, fmt.Errorf("no scenario %q", name)
		}
	}
	return found, nil
}

// Limit is what cannot be beaten in the table, nil if nothing is known.
func (t Table) Limit(roundTrip float64) Figures {
	if t.limit == nil {
		return nil
	}
	return t.limit(roundTrip)
}

// On-demand prices of us-east-1 since November 2024, in dollars a million units;
// docs/timing.md has them, too.
const (
	writePrice = 0.625
	readPrice  = 0.125
)

// cost adds what n sections used, each.
func (f Figures) cost(used usage, n int) {
	if n == 0 {
		return
	}
	f["requests"] = used.Requests / float64(n)
	f["writes"] = used.Writes / float64(n)
	f["reads"] = used.Reads / float64(n)
	f["dollars"] = f["writes"]*writePrice + f["reads"]*readPrice
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
