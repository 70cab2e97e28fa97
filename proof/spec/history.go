//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// History contains the events of one key in one run of the simulation, in the format that
// internal/simulation/writes_test.go writes.
type History struct {
	Name  string
	Lines []string
}

// ReadHistories reads the histories that the simulation has written.
func ReadHistories(from io.Reader) ([]History, error) {
	var all []History
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		switch line := lines.Text(); {
		case strings.HasPrefix(line, "seed "):
			all = append(all, History{Name: line})
		case len(all) == 0:
			return nil, fmt.Errorf("%q belongs to no history", line)
		default:
			h := &all[len(all)-1]
			h.Lines = append(h.Lines, line)
		}
	}
	return all, lines.Err()
}

// These constants must equal the constants in history.h and record.h.
const (
	mostAttempts = 30
	mostPlaces   = 8
	mostClients  = 4

	everyPlace = 100
)

var (
	eventNumbers = map[string]int{"sends": 1, "meets": 2, "hears": 3, "believes": 4, "doubts": 5}
	kindNumbers  = map[string]int{
		"grant": 1, "renew": 2, "release": 3, "handover": 4, "head": 4,
		"join": 5, "leave": 6, "guard": 7, "read": 8,
	}
)

// step is one parsed event of a history. It refers to attempts (writes) and clients by
// their names in the history.
type step struct {
	event, client, attempt, kind, lease, place, entry string
	grants                                            []string
	applied                                           bool
	version, grant                                    string // version and grant id in the record; "-" if there is no record
	queue                                             []string
}

func readStep(line string) (step, error) {
	f := strings.Fields(line)
	least := map[string]int{"sends": 7, "meets": 4, "hears": 4, "believes": 3, "doubts": 3}
	if len(f) == 0 || least[f[0]] == 0 || len(f) < least[f[0]] {
		return step{}, fmt.Errorf("%q is no event", line)
	}
	s := step{event: f[0], client: f[1], attempt: f[2]}
	var record []string
	switch s.event {
	case "sends":
		s.kind, s.lease, s.place, s.entry, s.grants = f[3], f[4], f[5], f[6], f[7:]
	case "meets":
		s.client, s.attempt, s.applied, record = "", f[1], f[2] == "applied", f[3:]
	case "hears":
		record = f[3:]
	}
	switch {
	case len(record) >= 3:
		s.version, s.grant, s.queue = record[0], record[1], record[3:]
	case len(record) == 1 && record[0] == "-":
		s.version, s.grant = "-", "-"
	case len(record) > 0:
		return step{}, fmt.Errorf("%q has no record", line)
	}
	return s, nil
}

// numbered converts a history to the numbers that history.h reads. Each attempt gets a
// number. Once no later event uses the attempt, another attempt may get the same number.
type numbered struct {
	steps   []step
	sent    map[string]step // by attempt: event in which the attempt was sent
	last    map[string]int  // by attempt: index of the last event that uses the attempt
	numbers map[string]int
	used    [mostAttempts + 1]string
}

// numbersOf returns the events of a history, each as the list of numbers that history.h
// reads.
func numbersOf(h History) ([][]int, error) {
	n := numbered{sent: map[string]step{}, last: map[string]int{}, numbers: map[string]int{}}
	for _, line := range h.Lines {
		s, err := readStep(line)
		if err != nil {
			return nil, err
		}
		n.steps = append(n.steps, s)
	}
	n.mention()
	events := make([][]int, len(n.steps))
	for i, s := range n.steps {
		var err error
		if events[i], err = n.event(i, s); err != nil {
			return nil, fmt.Errorf("%s: event %d, %s: %w", h.Name, i+1, h.Lines[i], err)
		}
	}
	return events, nil
}

// mention finds the last event that uses each attempt. An event uses the attempts that it names,
// and the attempts in the lock record at that time. The events "hears", "believes" and "doubts"
// also use the attempt that made the client believe that it holds the key.
func (n *numbered) mention() {
	var record step
	rests := map[[2]string]string{} // by client and grant: attempt that makes the client believe that it holds the key
	for i, s := range n.steps {
		mentioned := append([]string{s.attempt, s.version, s.grant, record.version, record.grant}, slices.Concat(s.queue, record.queue)...)
		if s.event == "sends" {
			n.sent[s.attempt] = s
		}
		if s.event == "meets" {
			record = s
		}
		switch s.event {
		case "hears":
			mentioned = append(mentioned, rests[[2]string{s.client, s.grant}])
			rests[[2]string{s.client, s.grant}] = s.version
		case "believes", "doubts":
			mentioned = append(mentioned, rests[[2]string{s.client, s.attempt}])
		}
		for _, name := range mentioned {
			n.last[name] = i
			for _, grant := range append(n.sent[name].grants, n.sent[name].entry) {
				n.last[grant] = i
			}
		}
	}
}

// event returns the event s, which has index i, as the numbers that history.h reads.
func (n *numbered) event(i int, s step) ([]int, error) {
	client := 0
	if s.client != "" {
		id, err := strconv.Atoi(s.client)
		if err != nil {
			return nil, err
		}
		client = min(id, mostClients-1) // at the end of a run, one more client acquires every key; its number is larger than the model allows
	}
	if s.event == "sends" {
		if err := n.take(i, s.attempt); err != nil {
			return nil, err
		}
	}
	var wrong error
	of := func(name string) int {
		if name == "" || name == "-" {
			return 0
		}
		if n.numbers[name] == 0 {
			wrong = fmt.Errorf("nobody has sent %s", name)
		}
		return n.numbers[name]
	}
	grant, ends, place := 0, 0, 0
	for j, name := range s.grants {
		number := of(name)
		if j == 0 {
			grant = number
		}
		if j > 0 || s.kind != "handover" && s.kind != "head" {
			ends |= 1 << number
		}
	}
	switch {
	case s.place == "all":
		place = everyPlace
	case s.place != "" && s.place != "-":
		var err error
		if place, err = strconv.Atoi(s.place); err != nil {
			return nil, err
		}
	}
	if len(s.queue) > mostPlaces {
		return nil, fmt.Errorf("more than %d are in the queue", mostPlaces)
	}
	out := []int{
		eventNumbers[s.event], client, of(s.attempt), kindNumbers[s.kind], grant, oneIf(s.lease == "short"), of(s.entry), place,
		of(s.version), oneIf(s.applied), ends,
	}
	for j := range mostPlaces {
		entry := ""
		if j < len(s.queue) && s.event == "meets" {
			entry = s.queue[j]
		}
		out = append(out, of(entry))
	}
	return out, wrong
}

// take assigns a number to the attempt: a free number, or the number of an attempt that no
// later event uses.
func (n *numbered) take(i int, attempt string) error {
	for number := 1; number <= mostAttempts; number++ {
		if old := n.used[number]; old == "" || n.last[old] < i {
			delete(n.numbers, old)
			n.used[number], n.numbers[attempt] = attempt, number
			return nil
		}
	}
	return fmt.Errorf("more than %d attempts are of use at once", mostAttempts)
}

func oneIf(is bool) int {
	if is {
		return 1
	}
	return 0
}
