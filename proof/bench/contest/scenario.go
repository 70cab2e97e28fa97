//go:build linux

package contest

import (
	"context"
	"fmt"
	"time"
)

// Scenario is one experiment that the benchmark runs with each contender.
type Scenario struct {
	Name   string
	Tables []Table

	clients int           // number of clients, callers or locks in the scenario; the tuned settings depend on it
	kind    kind          // what the scenario measures; only contenders that support this kind of scenario take part
	takes   time.Duration // estimated duration of a run, including the start of processes
	// together means that all contenders run at the same time. It is set for scenarios in
	// which clients do almost nothing but wait.
	together bool
	play     func(context.Context, *stage) (map[string]Figures, error)
}

// kind is what a scenario measures.
type kind int

const (
	cycling kind = iota
	contending
	sharing // several callers share one client
	waiting
	takingOver
	holding
)

// Table describes one of the tables that show the results.
type Table struct {
	Name    string
	Title   string
	Columns []Column
	Note    string
	// limit returns the best possible figures if a round trip takes roundTrip ms. The
	// function is nil if these figures are unknown.
	limit func(roundTrip float64) Figures
}

// Column describes a column of a table. A column shows one figure of every contender.
type Column struct {
	Figure, Heading string
	Digits          int // number of digits after the decimal point
}

// Columns that occur in several tables.
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

// hold is how long a contending client holds the key in one critical section.
const hold = 10 * time.Millisecond

// openRate is how many critical sections per second all clients of an open loop should execute
// together, on average. They can execute almost twice as many.
const openRate = 25

// Scenarios returns all scenarios in the order in which the contest runs them and the
// tables show them.
func Scenarios() []Scenario {
	all := []Scenario{cycle()}
	for _, clients := range []int{4, 16, 64} {
		all = append(all, contend(clients))
	}
	return append(all, localLine(16), longHold(), takeover(), heldLocks(1000), heldLocks(10_000))
}

// Find returns the scenarios with the given names, or all scenarios if names is empty.
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

// Limit returns the best possible figures of the table, or nil if they are unknown.
func (t Table) Limit(roundTrip float64) Figures {
	if t.limit == nil {
		return nil
	}
	return t.limit(roundTrip)
}

// DynamoDB prices in dollars for a million request units, on demand in us-east-1 since
// November 2024. docs/timing.md has the same prices.
const (
	writePrice = 0.625
	readPrice  = 0.125
)

// cost sets the figures in f that contain the average cost of one critical section. The parameter
// "used" is the usage of all n critical sections together.
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
