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

// Term is a period during which this process leads. A holding.Hold implements it.
type Term interface {
	TrustedUntil() time.Time // returns the time at which trust in the term ends; if the term has ended, a time that is not in the future
	Running() bool           // reports whether CMD was started and has not ended yet
}

// Seat is the state of one candidate in an election: the leader, as far as the candidate
// knows it, and the candidate's own term.
type Seat struct {
	now     func() time.Time
	overdue time.Duration

	mu     sync.Mutex      // guards term and leader; not locked while a method of term runs
	term   Term            // the current term of this process; nil while it campaigns
	leader election.Leader // the current leader; zero if unknown
}

// NewSeat returns the Seat of a process that campaigns and does not know the leader yet. During a
// term of this process, its renewals count as overdue when the trusted time left is less than the
// parameter "overdue".
func NewSeat(now func() time.Time, overdue time.Duration) *Seat {
	return &Seat{now: now, overdue: overdue}
}

// Saw records the given leader as the current one if this process campaigns. If this process
// already leads, Saw does nothing, because the caller read the leader's record before this process
// was elected.
func (s *Seat) Saw(leader election.Leader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.term == nil {
		s.leader = leader
	}
}

// Won records that this process leads in the given term. The parameter "as" is what other processes
// now see if they observe the election: this process's owner, value and token.
func (s *Seat) Won(term Term, as election.Leader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.term, s.leader = term, as
}

// Left records that the term of this process has ended, so that the leader is unknown.
func (s *Seat) Left() { s.Won(nil, election.Leader{}) }

// answers returns the current answers to the probes, and the leader for the body of GET /leader.
// The result "leads" is true if this process leads and still trusts its lock. The result "live" is
// false if CMD runs and renewals are overdue.
func (s *Seat) answers() (leads, live bool, leader election.Leader) {
	s.mu.Lock()
	term, leader := s.term, s.leader
	s.mu.Unlock()
	if term == nil {
		return false, true, leader
	}
	running, until := term.Running(), term.TrustedUntil()
	left := until.Sub(s.now())
	leads, live = left > 0, !running || left >= s.overdue
	if !leads {
		leader = election.Leader{}
	}
	return leads, live, leader
}

// Handler returns the HTTP handler for GET /leader and GET /live.
func (s *Seat) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /leader", func(w http.ResponseWriter, _ *http.Request) {
		leads, _, leader := s.answers()
		answer(w, leads, leaderText(leader))
	})
	mux.HandleFunc("GET /live", func(w http.ResponseWriter, _ *http.Request) {
		_, live, _ := s.answers()
		text := "live\n"
		if !live {
			text = "renewals are overdue\n"
		}
		answer(w, live, text)
	})
	return mux
}

// answer sends text with status 200 if yes is true, and with status 503 otherwise. Clients
// may not cache the response.
func answer(w http.ResponseWriter, yes bool, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	if !yes {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = io.WriteString(w, text) // fails only if the client has closed the connection
}

// leaderText returns one line for each field of l that is not empty.
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
