package ui

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

const (
	// Maximum number of messages that wait to be sent to a page. The server disconnects a page for
	// which more would wait. The rows that a new page gets at first do not count.
	backlog    = 256
	rowsAtOnce = 1000             // maximum number of rows in one message
	writeLimit = 20 * time.Second // time limit for sending one message
)

// listener is a connected web page to which the server sends changes.
type listener struct {
	id   string
	out  chan []byte   // messages to the page, as server-sent events
	done chan struct{} // closed when the page is too far behind and must reconnect
	// Key of the lock whose details the page shows; nil if it shows no details.
	focus *protocol.Key
}

// send queues a message for the page. It never blocks. If too many messages are queued, send
// disconnects the page, and the page connects again.
func (l *listener) send(message []byte) {
	select {
	case l.out <- message:
	default:
		select {
		case <-l.done:
		default:
			close(l.done)
		}
	}
}

// message returns v as JSON in a server-sent event with the given name.
func message(event string, v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		b, _ = json.Marshal(map[string]string{"problem": err.Error()})
	}
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", event, b)
}

// flush sends each web page what has changed since the last flush: in the list of keys, and in the
// details that the page shows. The caller must hold s.mu.
func (s *scanner) flush() {
	touched := map[protocol.Key]bool{}
	for e := range s.board.changed {
		touched[e.lock.Key] = true
	}
	c := s.board.take(s.clock)
	if len(touched) == 0 {
		return
	}
	var list []byte
	if !c.empty() {
		list = message("list", c)
	}
	shown := map[protocol.Key][]byte{}
	for l := range s.pages {
		if list != nil {
			l.send(list)
		}
		if l.focus == nil || !touched[*l.focus] {
			continue
		}
		if shown[*l.focus] == nil {
			shown[*l.focus] = message("lock", s.board.lock(*l.focus, s.clock))
		}
		l.send(shown[*l.focus])
	}
}

// sendStatus sends the scanner's status to all web pages. The caller must hold s.mu.
func (s *scanner) sendStatus(now time.Time) {
	if len(s.pages) == 0 {
		return
	}
	m := message("status", s.status(now))
	for l := range s.pages {
		l.send(m)
	}
}

// join registers a new web page, and sends it the list of all keys and the scanner's status.
func (s *scanner) join(about hello) *listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := s.board.all()
	l := &listener{id: rand.Text(), out: make(chan []byte, backlog+len(rows)/rowsAtOnce), done: make(chan struct{})}
	about.Page = l.id
	l.send(message("hello", about))
	for len(rows) > rowsAtOnce {
		l.send(message("list", changes{Rows: rows[:rowsAtOnce]}))
		rows = rows[rowsAtOnce:]
	}
	l.send(message("list", changes{Rows: rows}))
	l.send(message("status", s.status(time.Now())))
	s.pages[l] = true
	return l
}

func (s *scanner) leave(l *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pages, l)
}

// show makes the page with the given id show the details of a lock, or no details if key is the
// zero Key. It sends the details now, and flush sends later changes. It returns false if no such
// page is connected.
func (s *scanner) show(page string, key protocol.Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.pages {
		if l.id != page {
			continue
		}
		l.focus = nil
		if key != (protocol.Key{}) {
			l.focus = &key
			l.send(message("lock", s.board.lock(key, s.clock)))
		}
		s.rouse()
		return true
	}
	return false
}

// events serves the stream of messages to one web page, until the page or the server closes the
// connection.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	l := s.scan.join(s.hello)
	defer s.scan.leave(l)
	for {
		select {
		case m := <-l.out:
			_ = out.SetWriteDeadline(time.Now().Add(writeLimit))
			if _, err := w.Write(m); err != nil {
				return
			}
			if len(l.out) == 0 {
				if err := out.Flush(); err != nil {
					return
				}
			}
		case <-l.done:
			return
		case <-r.Context().Done():
			return
		case <-s.closing:
			return
		}
	}
}
