package ui

import (
	"context"
	"sync"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

const (
	mostSingles  = 25               // maximum number of reads of single keys between two pages of a pass
	longestRetry = 10 * time.Second // longest pause after a request that failed
	tick         = time.Second      // pause between two status messages
	silence      = 3 * time.Second  // time without an answer after which the pages report that the table does not answer
)

// unanswered is the error that the pages show while a request gets no answer. The text is
// constant, because a page announces each change of it.
const unanswered = "it does not answer"

// scanner reads the table in passes, for all pages together, and sends them the changes.
// Its methods are safe for concurrent use.
type scanner struct {
	src     Source
	every   time.Duration // time between the starts of two passes
	most    float64       // highest rate that a page may set, in read units a second
	explain func(error) string
	clock   clock

	mu      sync.Mutex // guards the fields below; never held across I/O
	board   *board
	pace    pace
	pages   map[*listener]bool
	began   time.Time // start of the last pass
	read    int       // items read in the current pass
	under   bool      // a pass is in progress
	last    passView  // the last complete pass
	asked   time.Time // time at which the request in flight was sent; zero if there is none
	heard   time.Time // time when the last answer came
	trouble string    // error of the last request; empty if the request succeeded

	wake chan struct{} // buffers one signal that ends a pause: the rate has changed, or a page shows another lock
}

// passView describes the last complete pass over the table, in the pages' format.
type passView struct {
	At     int64 `json:"at,omitempty"`
	TookMs int64 `json:"tookMs"`
	Items  int   `json:"items"`
}

// status describes the progress of the scanner, in the pages' format.
type status struct {
	Now      int64    `json:"now"`
	Rate     float64  `json:"rate"`    // maximum number of read units per second, set by a page
	Most     float64  `json:"most"`    // maximum that a page may set as Rate
	Reading  float64  `json:"reading"` // recent number of read units per second
	Pass     passView `json:"pass"`
	Whole    bool     `json:"whole"` // a pass has read the whole table
	Read     int      `json:"read"`  // number of items read so far in the current pass
	Trouble  string   `json:"trouble,omitempty"`
	Answered int64    `json:"answered"` // time of the last answer; before the first answer, time of the start
}

func newScanner(cfg Config, proto protocol.Protocol, by liveness.Rule, now time.Time) *scanner {
	return &scanner{
		src: cfg.Source, every: cfg.Every, most: cfg.Rate, explain: cfg.Explain, clock: clock{now},
		board: newBoard(proto, by), pace: pace{rate: cfg.Rate}, pages: map[*listener]bool{}, heard: now, wake: make(chan struct{}, 1),
	}
}

// run reads the table until ctx ends.
func (s *scanner) run(ctx context.Context) {
	start := time.Now()
	go s.tell(ctx)
	var at attempts.Walk // position of the current pass
	due := start         // start of the next pass
	singles := 0         // number of reads of single keys since the last page of a pass
	var retry time.Duration
	for ctx.Err() == nil {
		now := time.Now()
		wait := s.blocked(now)
		if wait != 0 {
			s.sleep(ctx, wait)
			continue
		}
		var request func() error
		paging := s.under || !now.Before(due)
		if key, ok := s.single(now); ok && (singles < mostSingles || !paging) {
			singles++
			request = func() error { return s.lookAt(ctx, key) }
		} else if paging {
			singles = 0
			if !s.under {
				s.begin(now)
				at, due = attempts.Walk{}, now.Add(s.every)
			}
			request = func() error { return s.page(ctx, &at) }
		} else {
			s.sleep(ctx, due.Sub(now))
			continue
		}
		if s.ask(request) == nil {
			retry = 0
			continue
		}
		retry = min(max(durations.Times(retry, 2), time.Second), longestRetry)
		s.sleep(ctx, retry)
	}
}

// blocked returns how long the limit on read units forbids the next read.
func (s *scanner) blocked(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pace.rate <= 0 {
		return time.Minute // no reads are allowed until a page sets a rate, which ends this wait early
	}
	return max(s.pace.next.Sub(now), 0)
}

func (s *scanner) sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.wake:
	case <-ctx.Done():
	}
}

func (s *scanner) rouse() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// single returns a key to read outside of the passes: the key that a page shows or, if
// there is none, a key whose holder's lease seems to have expired.
func (s *scanner) single(now time.Time) (key protocol.Key, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.pages {
		if l.focus == nil {
			continue
		}
		if e := s.board.entries[*l.focus]; e != nil && now.Sub(e.lock.Look.Answered) >= s.every {
			return *l.focus, true
		}
	}
	return s.board.due(now)
}

// lookAt reads one key and records the result.
func (s *scanner) lookAt(ctx context.Context, key protocol.Key) error {
	look := liveness.Reading{Asked: time.Now()}
	item, units, err := s.src.Item(ctx, key)
	look.Answered = time.Now()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pace.spend(units, look.Answered)
	if item == nil {
		s.board.seeNone(key, look)
	} else {
		s.board.see(item, look)
	}
	s.flush()
	return nil
}

// revived reports whether a holder that the pages show as dead has renewed its session
// since. A renewal of a session does not change the records of its locks.
func (s *scanner) revived(ctx context.Context, key protocol.Key, grant string) (bool, error) {
	sharing, ok := s.board.proto.(protocol.Native) // the protocol never changes, so no mutex is needed
	if !ok {
		return false, nil
	}
	if err := s.lookAt(ctx, key); err != nil {
		return false, err
	}
	session := s.holder(key, grant).Record.Session
	if session == "" {
		return false, nil
	}
	if err := s.lookAt(ctx, sharing.SessionKey(session)); err != nil {
		return false, err
	}
	return !s.holder(key, grant).Beat.Dead, nil
}

// holder returns the last observed holder of key if it has the given grant. Otherwise it
// returns the zero Holder.
func (s *scanner) holder(key protocol.Key, grant string) Holder {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.board.entries[key]; e != nil && e.lock.Holder != nil && e.lock.Holder.Grant == grant {
		return *e.lock.Holder
	}
	return Holder{}
}

func (s *scanner) begin(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began, s.read, s.under = now, 0, true
}

// page reads the next page of items of the current pass, and records them.
func (s *scanner) page(ctx context.Context, at *attempts.Walk) error {
	look := liveness.Reading{Asked: time.Now()}
	p, err := s.src.Page(ctx, at)
	look.Answered = time.Now()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pace.spend(p.Units, look.Answered)
	for _, item := range p.Items {
		s.board.see(item, look)
	}
	s.read += len(p.Items)
	if len(at.Start) == 0 {
		s.board.finish(liveness.Reading{Asked: s.began, Answered: look.Answered})
		s.under = false
		s.last = passView{At: s.clock.ms(look.Answered), TookMs: look.Answered.Sub(s.began).Milliseconds(), Items: s.read}
	}
	s.flush()
	return nil
}

// ask sends a request to the table. It notifies the web pages if the request fails or gets
// no answer, and when a later request succeeds.
func (s *scanner) ask(request func() error) error {
	s.mu.Lock()
	s.asked = time.Now()
	s.mu.Unlock()
	late := time.AfterFunc(silence, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sendStatus(time.Now())
	})
	err := request()
	late.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	troubled := s.troubleAt(now) != ""
	s.asked, s.trouble = time.Time{}, ""
	if err == nil {
		s.heard = now
	} else {
		s.trouble = s.explain(err)
	}
	if troubled || err != nil {
		s.sendStatus(now)
	}
	return err
}

// troubleAt returns why the state of the table is unknown at the time now, or "" if it is
// known. The caller must hold s.mu.
func (s *scanner) troubleAt(now time.Time) string {
	if s.trouble == "" && !s.asked.IsZero() && now.Sub(s.asked) >= silence {
		return unanswered
	}
	return s.trouble
}

// setRate sets the maximum number of read units per second; zero stops all reads.
func (s *scanner) setRate(rate float64) {
	s.mu.Lock()
	s.pace.set(min(max(rate, 0), s.most), time.Now())
	s.sendStatus(time.Now())
	s.mu.Unlock()
	s.rouse()
}

// tell sends the status to the pages once a second. A page that receives no status shows
// that its content may be out of date.
func (s *scanner) tell(ctx context.Context) {
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
		s.mu.Lock()
		s.sendStatus(time.Now())
		s.mu.Unlock()
	}
}

// status returns the status at the time now. The caller must hold s.mu.
func (s *scanner) status(now time.Time) status {
	return status{
		Now: s.clock.ms(now), Rate: s.pace.rate, Most: s.most, Reading: s.pace.perSecond(now, s.clock.base),
		Pass: s.last, Whole: s.board.whole, Read: s.read, Trouble: s.troubleAt(now), Answered: s.clock.ms(s.heard),
	}
}
