package leasehold

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// tryFor is how long TryAcquire repeats requests that DynamoDB does not answer.
const tryFor = 10 * time.Second

// seeker seeks one key on behalf of one Acquire call, from the moment the call
// has its turn in the local line. It runs on a goroutine of its own, so that
// the call can return at once when its context ends; what it has sent by then
// is finished here and undone.
type seeker struct {
	c     *Client
	want  *request
	delay time.Duration // for so long other processes go first

	tried    attempts.Sequence[attempt]
	requests int
	view     decide.View
	seen     *Record // the record as last shown, if held by another
	crowd    crowd   // of a read/write lock

	session *session // to be granted under, nil for none

	holder  atomic.Pointer[Record] // seen, for the caller
	others  atomic.Int32           // readers beside holder, if they leave no room
	lastErr atomic.Pointer[error]

	*effort
	granted *holding // or
	err     error    // once the effort is done
}

func newSeeker(ctx context.Context, c *Client, want *request, delay time.Duration) *seeker {
	return &seeker{c: c, want: want, delay: delay, crowd: crowd{due: c.now().Mono}, effort: newEffort(ctx)}
}

// effort is what is done on behalf of a call on a goroutine of its own.
type effort struct {
	life context.Context // ends when nobody waits; carries the caller's values
	kill context.CancelFunc
	done chan struct{} // closed when there is a result

	mu        sync.Mutex // guards the next two
	abandoned bool
	finished  bool

	trouble trouble // of the goroutine that does it
}

func newEffort(ctx context.Context) *effort {
	e := &effort{done: make(chan struct{})}
	e.life, e.kill = context.WithCancel(context.WithoutCancel(ctx))
	return e
}

// abandon tells the effort that nobody waits for it. False: it has finished
// before, and its result stands.
func (e *effort) abandon() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.finished {
		return false
	}
	e.abandoned = true
	e.kill()
	return true
}

// finish settles whether anybody gets the result, and reports that nobody does.
func (e *effort) finish() (abandoned bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.finished = true
	return e.abandoned
}

func (s *seeker) run() {
	defer s.kill()
	defer close(s.done)
	s.c.observed.Watch(s.want.key)
	defer s.c.observed.Unwatch(s.want.key)
	s.crowd.entries.Of = s.c.entries
	defer s.crowd.entries.Only()
	attempts.Wait(s.life, s.delay)
	h, err := s.seek()
	abandoned := s.finish()
	// An attempt without an answer may be applied yet: once the key is free again.
	tried := s.tried.Unanswered()
	s.c.leaveUnsettled(s.want.key, attempts.Versions(append(slices.Clip(tried), s.crowd.intents...)))
	if h == nil {
		s.err = err
		if s.want.side == nil {
			s.c.lines.Pass(s.want.key, nil)
		}
		undo := func() {
			s.c.freeUnsettled(s.life, s.want, tried)
			s.withdraw(s.life)
		}
		if abandoned || s.want.manual {
			undo()
		} else {
			s.c.detach(undo) // the caller need not wait for it
		}
		return
	}
	if s.want.side == nil {
		s.c.lines.Granted(h.key, h)
	}
	if abandoned {
		h.abandon()
		return
	}
	s.granted = h
}

// seek asks for the key until it is granted, refused, or nobody waits.
func (s *seeker) seek() (*holding, error) {
	began := s.c.now()
	s.view = decide.View{PollMin: s.c.cfg.PollMin, PollMax: s.c.cfg.PollMax}
	pauses := s.c.waitPauses()
	for {
		h, err := s.step()
		switch {
		case h != nil:
			return h, nil
		case err == nil:
			pauses.Reset()
			continue
		}
		if err := s.failed(err, began, &pauses); err != nil {
			return nil, err
		}
	}
}

// step does what is next: a look or a grant, after the pause that is due. An
// error that is no attempts.Failure ends the seeking.
func (s *seeker) step() (*holding, error) {
	if err := s.watchSession(); err != nil {
		return nil, err
	}
	if err := s.intend(); err != nil {
		return nil, err
	}
	move, wait := decide.Next(s.view, s.c.now().Mono, s.c.chance())
	if s.want.noWait && (move == decide.Look || wait > 0) {
		return nil, s.held()
	}
	attempts.Wait(s.life, min(wait, s.untilIntent()))
	switch {
	case s.life.Err() != nil:
		return nil, ErrClosed // nobody reads it
	case move == decide.TakeOver && wait > 0:
		return nil, nil // that a timer has fired is no proof that the clock has come to it
	case move == decide.Look:
		return nil, s.look()
	}
	return s.take(move == decide.TakeOver)
}

// waitPauses are the pauses between a waiter's requests that fail.
func (c *Client) waitPauses() attempts.Pauses {
	return attempts.Pauses{Least: c.cfg.PollMin, Most: 2 * time.Second}
}

// failed pauses after a request without success, the longer the more there were;
// an error ends the seeking.
func (s *seeker) failed(err error, began decide.Instant, pauses *attempts.Pauses) error {
	f := attempts.FailureOf(err)
	if f == nil {
		return err
	}
	s.fails(f.Err)
	if f.Cause == decide.Refused {
		return opError("acquire", s.c.cfg.Table, s.want.key, f.Err)
	}
	if f.Cause == decide.Busy {
		s.c.throttled(s.life, s.want.key, 0)(f.Err)
	}
	if s.want.noWait && s.c.now().Mono-began.Mono > tryFor {
		return s.gaveUp()
	}
	if !s.c.requests.Pause(s.life, pauses) {
		return ErrClosed // nobody reads it
	}
	return nil
}

// gaveUp is the error of a try that DynamoDB has not answered.
func (s *seeker) gaveUp() error {
	err := fmt.Errorf("gave up after %v", tryFor)
	if last := s.lastErr.Load(); last != nil {
		err = fmt.Errorf("%w: %w", err, *last)
	}
	return opError("acquire", s.c.cfg.Table, s.want.key, err)
}

// fails keeps why the last request failed, and says so now and then.
func (s *seeker) fails(err error) {
	s.lastErr.Store(&err)
	s.trouble.tell(s.life, s.c, s.want.key, err)
}

func (s *seeker) held() error {
	held := s.c.heldError(s.want.key, *s.seen, nil)
	held.others = int(s.others.Load())
	return held
}

// look reads the record once.
func (s *seeker) look() error {
	s.requests++
	item, err := s.c.requests.Read(s.life, protocol.Key(s.want.key))
	if err != nil {
		return err
	}
	return s.see(item)
}

// decode reads an item as the record of what attempt grant was granted.
func (s *seeker) decode(grant string, item protocol.Item) (Record, error) {
	r, err := s.want.protoOf(s.c, grant).Decode(item)
	if err != nil {
		return Record{}, s.c.recordError(s.want.key, item, err)
	}
	return recordOf(r), nil
}

// errSessionLives is why a holder is not taken over: its session has been renewed.
var errSessionLives = errors.New("the holder's session lives")

// ready prepares for a grant: the session of a holder to be taken over is dead,
// and this client has one of its own if its locks share it.
func (s *seeker) ready(over bool) error {
	if s.want.side != nil {
		return nil // these are renewed one by one
	}
	if over {
		if err := s.endSession(); err != nil {
			return err
		}
	}
	session, err := s.c.session(s.life)
	s.session = session
	return err
}

// next spells the next attempt to be granted, for which the seeker is ready.
func (s *seeker) next(over bool) (attempt, *protocol.Write) {
	if s.want.side != nil {
		return s.nextSide(over)
	}
	a := s.c.newAttempt(s.want.timing.Lease).under(s.session)
	if over {
		a.dead = s.deadHolder()
	}
	g := s.c.grantOf(s.want, a)
	g.Takeable = s.tried.Versions()
	switch {
	case over && s.view.Ours:
		g.Takeable = append(g.Takeable, s.seen.Version)
	case over:
		g.Dead = []protocol.Record{s.seen.protocol()}
	}
	return a, s.c.proto.Grant(g)
}

// take sends one grant. A holding, or an error that is no attempts.Failure, ends
// the seeking.
func (s *seeker) take(over bool) (*holding, error) {
	if err := s.ready(over); errors.Is(err, errSessionLives) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	s.requests++
	r := s.tried.Try(context.WithoutCancel(s.life), s.c.requests, attempts.Operation[attempt]{
		Key:    protocol.Key(s.want.key),
		Next:   func() (attempt, *protocol.Write) { return s.next(over) },
		Within: s.want.grantWithin(s.session),
		Shows:  s.shows,
	})
	s.limit()
	switch r.Outcome {
	case attempts.Applied:
		record, err := s.decode(r.Attempt.version, r.Item)
		if err != nil {
			s.note(r.Attempt) // it was applied, on something that a grant leaves in place
			return nil, err
		}
		if !r.Earlier {
			s.c.sweep(s.life, s.want, r.Item)
		}
		return s.hold(r.Attempt, record), nil
	case attempts.Rejected:
		return nil, s.rejected(r)
	}
	return nil, r.Failure()
}

// shows returns the attempt whose grant a record shows: one delivered twice, or
// an earlier one without an answer. It must be worth having: half its trust left.
func (s *seeker) shows(item protocol.Item, sent []attempt) (attempt, bool) {
	if item == nil {
		return attempt{}, false
	}
	if s.want.side != nil {
		return s.showsSide(item, sent)
	}
	r, err := s.c.decode(s.want.key, item)
	a, ok := attempts.Find(sent, r.Version)
	return a, ok && err == nil && !r.Released && a.isWorthHaving(s.want.timing, s.c.now())
}

// rejected looks at the record that a grant of ours met.
func (s *seeker) rejected(r attempts.Result[attempt]) error {
	if err := s.met(r.Item); err != nil {
		return err
	}
	if s.want.side != nil {
		s.spend(r)
	} else if s.seen != nil && s.seen.Version == r.Attempt.version {
		s.view.Ours = true
	}
	if s.view.Free {
		return r.Failure() // it has become free since: look again
	}
	return nil
}

// met enters the record that a grant of ours met.
func (s *seeker) met(item protocol.Item) error {
	if item == nil && s.want.ifExists {
		return fmt.Errorf("%w: %v in table %s: IfExists acquires only a record that is there", ErrNotFound, s.want.key, s.c.cfg.Table)
	}
	return s.see(item)
}

// see enters what a reply has shown.
func (s *seeker) see(item protocol.Item) error {
	s.trouble.passed()
	if s.want.side != nil {
		return s.seeSide(item)
	}
	now := s.c.now()
	s.view.Known, s.view.Free, s.view.Ours = true, true, false
	r, v, err := s.c.observe(s.want.key, item, now)
	if err != nil {
		return err
	}
	if r == nil {
		s.seen = nil
		return nil
	}
	s.view.Free = false
	s.view.Ours = s.c.isUnsettled(s.want.key, r.Version) || slices.Contains(s.tried.Versions(), r.Version)
	s.view.Grant, s.view.Dead = v.Granted, s.c.deadAt(*r, v, now, time.Now())
	changed := s.seen == nil || grantIDOf(*s.seen) != grantIDOf(*r)
	s.seen = r
	s.holder.Store(r)
	if changed && !s.view.Ours {
		s.c.lines.ReportHolder(s.want.key, r)
		s.c.emit(s.life, Event{Kind: EventWaiting, Key: s.want.key, Holder: r})
	}
	return nil
}

// note remembers an attempt whose effect is not known.
func (s *seeker) note(a attempt) {
	s.tried.Add(a)
	s.limit()
}

// limit leaves to the client what is too old to be named in every condition: seen
// as holder, it is taken over at once.
func (s *seeker) limit() {
	if old := s.tried.Keep(attempts.MostUnanswered); len(old) > 0 {
		s.c.leaveUnsettled(s.want.key, attempts.Versions(old))
	}
}

// deadHolder returns the dead holder that a takeover of the record seen replaces:
// behind an attempt of our own without an answer, the one which that has replaced.
func (s *seeker) deadHolder() *Record {
	if !s.view.Ours {
		return s.seen
	}
	a, _ := s.tried.Find(s.seen.Version)
	return a.dead
}

// hold makes a holding of a grant.
func (s *seeker) hold(a attempt, r Record) *holding {
	s.tried.Drop(a.version)
	s.c.observed.Forget(s.want.key)
	h := s.c.newHolding(s.life, s.want, a, r)
	h.took = a.dead
	return h
}
