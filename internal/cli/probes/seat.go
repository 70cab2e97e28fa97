package probes

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/election"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
)

// Term is a period in which this process leads.
type Term interface {
	TrustedUntil() time.Time // returns the time until which the term is trusted; this time is never in the future once the term has ended
	Running() bool           // reports whether CMD has begun and has not ended
}

// Seat is the state of the election in which this process campaigns, as far as the process
// knows it.
type Seat struct {
	now     func() time.Time
	overdue time.Duration

	mu     sync.Mutex      // guards the fields below; not held during calls of term
	term   Term            // the term of this process; nil if it campaigns
	leader election.Leader // the current leader; zero if unknown
}

// NewSeat returns the Seat of a process that campaigns and knows no leader. Renewals are
// overdue when less than the duration overdue is left until trust in a term ends.
func NewSeat(now func() time.Time, overdue time.Duration) *Seat {
	return &Seat{now: now, overdue: overdue}
}

// Saw records the leader while this process campaigns. It does nothing while this process
// leads: such an event describes the time before this process won.
func (s *Seat) Saw(leader election.Leader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.term == nil {
		s.leader = leader
	}
}

// Won records that this process leads.
func (s *Seat) Won(term Term, as election.Leader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.term, s.leader = term, as
}

// Left records that the term of this process has ended. The next leader is not known yet.
func (s *Seat) Left() { s.Won(nil, election.Leader{}) }

// stands returns the standing of this process now, and the leader.
func (s *Seat) stands() (standing, election.Leader) {
	s.mu.Lock()
	term, leader := s.term, s.leader
	s.mu.Unlock()
	if term == nil {
		return standingAt(s.now(), time.Time{}, s.overdue, false), leader
	}
	running, until := term.Running(), term.TrustedUntil()
	at := standingAt(s.now(), until, s.overdue, running)
	if !at.leads {
		leader = election.Leader{}
	}
	return at, leader
}

// Handler answers /leader and /live.
func (s *Seat) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /leader", func(w http.ResponseWriter, _ *http.Request) {
		at, leader := s.stands()
		answer(w, at.leads, leaderText(leader))
	})
	mux.HandleFunc("GET /live", func(w http.ResponseWriter, _ *http.Request) {
		at, _ := s.stands()
		text := "live\n"
		if !at.live {
			text = "renewals are overdue\n"
		}
		answer(w, at.live, text)
	})
	return mux
}

// answer writes text with status 200 if yes is true and 503 if it is false. It forbids the
// client to cache the answer.
func answer(w http.ResponseWriter, yes bool, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	if !yes {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = io.WriteString(w, text) // fails if the client has closed the connection
}

// leaderText describes the leader with one line per field.
func leaderText(l election.Leader) string {
	if l == (election.Leader{}) {
		return "who leads is not known\n"
	}
	var text string
	for _, line := range [][2]string{{"owner", wording.Cell(l.Owner)}, {"value", wording.Cell(l.Value)}, {"token", wording.Token(l.Token)}} {
		if line[1] != "" {
			text += fmt.Sprintf("%s\t%s\n", line[0], line[1])
		}
	}
	return text
}

// standing is the state of the process at one moment.
type standing struct {
	leads bool // this process is trusted to lead
	live  bool // CMD does not run, or CMD runs and renewals are not overdue
}

// standingAt returns the standing of a process at the time now. The process's term is
// trusted until trustedUntil, which is zero without a term. Renewals are overdue when less
// than the duration overdue is left until then.
func standingAt(now, trustedUntil time.Time, overdue time.Duration, running bool) standing {
	left := trustedUntil.Sub(now) // negative without a term
	return standing{leads: left > 0, live: !running || left >= overdue}
}
