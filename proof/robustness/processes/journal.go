//go:build linux

package processes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

// journal is a file to which all processes append, one line in each write. The kernel
// appends each line as a whole, at the end of the file.
type journal struct {
	file *os.File
	who  string
}

func openJournal(path, who string) (*journal, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return &journal{f, who}, nil
}

// write appends an event. It panics if the write fails, because a process must not perform
// an action that it cannot record.
func (j *journal) write(e Event) {
	if e.Who == "" {
		e.Who = j.who
	}
	if e.At == 0 {
		e.At = now()
	}
	line, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	// The newline comes before each line, not after it. So if a kill interrupts a write,
	// the next line is still complete.
	if _, err := j.file.Write(append([]byte{'\n'}, line...)); err != nil {
		panic(fmt.Sprintf("journal: %v", err))
	}
}

func (j *journal) close() { _ = j.file.Close() }

// parse returns the events in text, and the number of incomplete lines. A line is incomplete
// if its writer was killed during the write. parse ignores such a line.
func parse(text []byte) (events []Event, torn int) {
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		var e Event
		if json.Unmarshal(line, &e) != nil {
			torn++
			continue
		}
		events = append(events, e)
	}
	return events, torn
}
