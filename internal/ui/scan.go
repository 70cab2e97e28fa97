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
	mostSingles  = 25               // maximum number of keys that are read singly between two Scan requests of a pass
	longestRetry = 10 * time.Second // longest pause after a failed request
	tick         = time.Second      // interval between two status messages to the pages
	// If the table has not replied for this long, the web pages report that.
	silence = 3 * time.Second
)

// unanswered is the error that the web pages show while DynamoDB does not reply to a request.
// The text is constant, because a screen reader announces each change of the text.
const unanswered = "it does not answer"

// scanner reads the table, and sends each change to all connected web pages. It reads in passes:
// each pass is a series of Scan requests that reads the whole table. All pages share one pass.
// The scanner's methods are safe for concurrent use.
type scanner struct {
	src     Source
	every   time.Duration // interval between the starts of two passes
	most    float64       // highest rate that a web page may set, in read units per second
	explain func(error) string
	clock   clock

	mu      sync.Mutex // guards the fields below; not held during a request or a write
	board   *board
	pace    pace
	pages   map[*listener]bool
	began   time.Time // time when the last pass started
	read    int       // number of items read in the current pass
	under   bool      // whether a pass is in progress
	last    passView  // last complete pass over the table
	asked   time.Time // time when the request in flight was sent; zero if no request is in flight
	heard   time.Time // time of the last reply
	trouble string    // error of the last request; "" if the request succeeded

	// Channel with a buffer for one signal. A signal ends the scanner's pause early. The method
	// "rouse" sends a signal when a page changes the rate or selects a lock.
	wake chan struct{}
}

// passView describes the last complete pass over the table, in the format of messages to the
// web pages.
type passView struct {
	At     int64 `json:"at,omitempty"`
	TookMs int64 `json:"tookMs"`
	Items  int   `json:"items"`
}

// status describes the progress of the scanner, in the format of messages to the web pages.
type status struct {
	Now      int64    `json:"now"`
	Rate     float64  `json:"rate"`    // maximum number of read units per second: Config.Rate until a web page sets another
	Most     float64  `json:"most"`    // highest Rate that a web page may set
	Reading  float64  `json:"reading"` // average number of read units per second in the last 10 s (meterFor)
	Pass     passView `json:"pass"`
	Whole    bool     `json:"whole"` // a pass has read the whole table at least once
	Read     int      `json:"read"`  // number of items read so far in the current pass
	Trouble  string   `json:"trouble,omitempty"`
	Answered int64    `json:"answered"` // time of the last reply; before the first reply, start time of the server
}

func newScanner(cfg Config, proto protocol.Protocol, by liveness.Rule, now time.Time) *scanner {
	return &scanner{
		src: cfg.Source, every: cfg.Every, most: cfg.Rate, explain: cfg.Explain, clock: clock{now},
		board: newBoard(proto, by), pace: pace{rate: cfg.Rate}, pages: map[*listener]bool{}, heard: now, wake: make(chan struct{}, 1),
	}
}

// run reads the table in passes until ctx is done.
func (s *scanner) run(ctx context.Context) {
	start := time.Now()
	go s.tell(ctx)
	var at attempts.Walk // position of the current pass in the table
	due := start         // time when the next pass starts
	singles := 0         // number of single keys read since the last Scan request of a pass
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

// blocked returns how long the scanner must wait until the limit on read units allows the next
// read.
func (s *scanner) blocked(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pace.rate <= 0 {
		// The rate is zero, so no reads are allowed. The wait ends early when a page sets a new
		// rate.
		return time.Minute
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

// single returns a key to read outside of a pass, if there is one. Keys whose details a web page
// shows come first, if their last read ended at least s.every ago. Then come keys whose holder's
// lease seems to have expired.
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

// lookAt reads one key and records the result on the board.
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

// revived reports whether a holder that the web pages show as dead has renewed its session.
// A renewal of a session does not change the records of the session's locks.
func (s *scanner) revived(ctx context.Context, key protocol.Key, grant string) (bool, error) {
	sharing, ok := s.board.proto.(protocol.Native) // no mutex is needed, because the protocol never changes
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

// holder returns the last observed holder of key if the holder has the given grant, and the
// zero Holder otherwise.
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

// The method "page" makes the next Scan request of the current pass, and records the items.
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

// ask sends a request to the table. It notifies the web pages if the request fails or gets no
// reply, and again when a later request succeeds.
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

// troubleAt returns why the state of the table is unknown at the given time, or "" if the state is
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

// tell sends the status of the scanner to the web pages once a second. A page that receives no
// status shows that its content may be out of date.
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

// status returns the scanner's status at the given time. The caller must hold s.mu.
func (s *scanner) status(now time.Time) status {
	return status{
		Now: s.clock.ms(now), Rate: s.pace.rate, Most: s.most, Reading: s.pace.perSecond(now, s.clock.base),
		Pass: s.last, Whole: s.board.whole, Read: s.read, Trouble: s.troubleAt(now), Answered: s.clock.ms(s.heard),
	}
}
