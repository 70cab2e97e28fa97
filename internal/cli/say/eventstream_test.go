package say

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestEventStreamDoesNotWaitForSlowReader(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	lab.OK(t, err)
	s := newEventStream("pipe", func(error) {}) // the stream calls this function when the reader closes the pipe
	go s.write(writer)
	defer func() {
		_ = reader.Close()
		<-s.done
	}()
	const events = 10 * eventsKept
	began := time.Now()
	for range events {
		s.send(Event{Event: strings.Repeat("x", 1000)})
	}
	unwritten := s.end()
	if took := time.Since(began); took > patience {
		t.Errorf("the writes took %v", took)
	}
	if unwritten < events-eventsKept-100 { // 100 for the events that are in the kernel's pipe buffer
		t.Errorf("%d of %d events were reported as unwritten", unwritten, events)
	}
}

// patience is how long the test may take. It is much longer than the stream waits for a
// slow reader.
const patience = 20 * eventsPatience
