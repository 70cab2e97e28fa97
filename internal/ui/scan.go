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
	mostSingles  = 25               // looks at single keys between two pages
	longestRetry = 10 * time.Second // after a request that failed
	tick         = time.Second      // between two statuses
	silence      = 3 * time.Second  // of the table, until it is trouble
)

// unanswered is the trouble of a request that has no answer yet. It stays the same for as
// long: a page announces what changes.
const unanswered = "it does not answer"

// scanner reads the table again and again, once for all pages, and tells them what has
// changed. Its methods are safe for concurrent use.
type scanner struct {
	src     Source
	every   time.Duration // between the starts of two passes
	most    float64       // read units a second that a page may ask for
	explain func(error) string
	clock   clock

	mu      sync.Mutex // guards what follows; never held across I/O
	board   *board
	pace    pace
	pages   map[*listener]bool
	began   time.Time // of the last pass
	read    int       // items in the pass under way
	under   bool      // a pass is under way
	last    passView  // the last whole pass
	asked   time.Time // when the request under way was sent; zero: there is none
	heard   time.Time // the last answer
	trouble string    // of the last request

	wake chan struct{} // one place: the rate has changed, or a page shows another lock
}

// passView is a pass over the table.
type passView struct {
	At     int64 `json:"at,omitempty"`
	TookMs int64 `json:"tookMs"`
	Items  int   `json:"items"`
}

// status is what the page says of the reading.
type status struct {
	Now      int64    `json:"now"`
	Rate     float64  `json:"rate"`    // read units a second at most
	Most     float64  `json:"most"`    // that Rate may be set to
	Reading  float64  `json:"reading"` // read units a second of late
	Pass     passView `json:"pass"`
	Whole    bool     `json:"whole"` // the table has been read to its end once
	Read     int      `json:"read"`  // items so far in the pass under way
	Trouble  string   `json:"trouble,omitempty"`
	Answered int64    `json:"answered"` // the last answer; before the first, the start
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
	var at attempts.Walk // of the pass under way
	due := start         // the next pass
	singles := 0         // since the last page
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

// blocked returns how long nothing may be read, by the pace.
func (s *scanner) blocked(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pace.rate <= 0 {
		return time.Minute // until somebody sets a rate
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

// single returns a key that is worth a look of its own: one that a page shows or, if
// there is none, one whose holder's lease has ended as far as is known.
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

// lookAt reads one key.
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

// revived reports whether the session of a holder that was seen dead has been renewed
// since: its record does not show that.
func (s *scanner) revived(ctx context.Context, key protocol.Key, grant string) (bool, error) {
	sharing, ok := s.board.proto.(protocol.Native) // never changes
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

// holder is the holder of a grant as it was seen last, the zero Holder if it is not one.
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

// page reads the next page of the pass under way.
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

// ask makes a request. The pages are told when it gets no answer, when it fails, and
// when requests are answered again.
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

// troubleAt is why the table is not known as it stands; "": it is. s.mu is held.
func (s *scanner) troubleAt(now time.Time) string {
	if s.trouble == "" && !s.asked.IsZero() && now.Sub(s.asked) >= silence {
		return unanswered
	}
	return s.trouble
}

// setRate changes how many read units a second are taken at most; 0: none.
func (s *scanner) setRate(rate float64) {
	s.mu.Lock()
	s.pace.set(min(max(rate, 0), s.most), time.Now())
	s.sendStatus(time.Now())
	s.mu.Unlock()
	s.rouse()
}

// tell sends the status now and then, so that a page knows that it is not stale.
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

// status is as of now. s.mu is held.
func (s *scanner) status(now time.Time) status {
	return status{
		Now: s.clock.ms(now), Rate: s.pace.rate, Most: s.most, Reading: s.pace.perSecond(now, s.clock.base),
		Pass: s.last, Whole: s.board.whole, Read: s.read, Trouble: s.troubleAt(now), Answered: s.clock.ms(s.heard),
	}
}
