package leasehold

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

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

	tried    []attempt // without an answer, oldest first
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
	pause(s.life.Done(), s.delay)
	h, err := s.seek()
	abandoned := s.finish()
	tried := versionsOf(s.tried)
	if h == nil {
		s.err = err
		s.c.leaveUnsettled(s.want.key, append(tried, versionsOf(s.crowd.intents)...))
		if s.want.side == nil {
			s.c.lines.Pass(s.want.key, nil)
		}
		undo := func() {
			s.c.freeUnsettled(s.life, s.want, s.tried)
			s.withdraw(s.life)
		}
		if abandoned || s.want.manual {
			undo()
		} else {
			s.c.detach(undo) // the caller need not wait for it
		}
		return
	}
	// An earlier attempt may land yet, once the key is free again.
	tried = append(tried, versionsOf(s.crowd.intents)...)
	s.c.leaveUnsettled(s.want.key, slices.DeleteFunc(tried, func(v string) bool { return v == h.grant }))
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
	for failures := 0; ; {
		if ans, err := s.watchSession(); err != nil {
			return nil, err
		} else if ans.err != nil {
			if err := s.failed(ans, began, &failures); err != nil {
				return nil, err
			}
			continue
		}
		if ans, err := s.intend(); err != nil {
			return nil, err
		} else if ans.err != nil {
			if err := s.failed(ans, began, &failures); err != nil {
				return nil, err
			}
		}
		move, wait := decide.Next(s.view, s.c.now().Mono, s.c.chance())
		if s.want.noWait && (move == decide.Look || wait > 0) {
			return nil, s.held()
		}
		pause(s.life.Done(), min(wait, s.untilIntent()))
		if s.life.Err() != nil {
			return nil, ErrClosed // nobody reads it
		}
		if move == decide.TakeOver && wait > 0 {
			continue // that a timer has fired is no proof that the clock has come to it
		}
		var h *holding
		var ans answer
		var err error
		if move == decide.Look {
			ans, err = s.look()
		} else {
			h, ans, err = s.take(move == decide.TakeOver)
		}
		if h != nil || err != nil {
			return h, err
		}
		if ans.err == nil || ans.Cause == decide.ConditionFailed && !s.view.Free {
			failures = 0
			continue
		}
		if err := s.failed(ans, began, &failures); err != nil {
			return nil, err
		}
	}
}

// failed pauses after a request without success, the more often the longer; an
// error ends the seeking.
func (s *seeker) failed(ans answer, began decide.Instant, failures *int) error {
	s.fails(ans.err)
	if ans.Cause == decide.Refused {
		return opError("acquire", s.c.cfg.Table, s.want.key, ans.err)
	}
	if ans.Cause == decide.Busy {
		s.c.emit(s.life, Event{Kind: EventThrottled, Key: s.want.key, Requests: 1, Err: ans.err})
	}
	if s.want.noWait && s.c.now().Mono-began.Mono > tryFor {
		return s.gaveUp()
	}
	pause(s.life.Done(), s.c.cfg.PollMin+s.c.backoff(*failures, 2*time.Second))
	*failures++
	if s.life.Err() != nil {
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
func (s *seeker) look() (answer, error) {
	s.requests++
	ans := s.c.read(s.life, s.want.key)
	if ans.err != nil {
		return ans, nil
	}
	return ans, s.see(ans.item)
}

// decode reads an item as the record of what attempt grant was granted.
func (s *seeker) decode(grant string, item protocol.Item) (Record, error) {
	r, err := s.want.protoOf(s.c, grant).Decode(item)
	if err != nil {
		return Record{}, s.c.recordError(s.want.key, item, err)
	}
	return recordOf(r), nil
}

// ready prepares for a grant: the session of a holder to be taken over is dead,
// and this client has one of its own if its locks share it. False: not now.
func (s *seeker) ready(over bool) (bool, answer, error) {
	if s.want.side != nil {
		return true, answer{}, nil // these are renewed one by one
	}
	if over {
		if dead, ans, err := s.endSession(); !dead {
			return false, ans, err
		}
	}
	session, ans := s.c.session(s.life)
	s.session = session
	return ans.err == nil, ans, nil
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
	g.Takeable = versionsOf(s.tried)
	switch {
	case over && s.view.Ours:
		g.Takeable = append(g.Takeable, s.seen.Version)
	case over:
		g.Dead = []protocol.Record{s.seen.protocol()}
	}
	return a, s.c.proto.Grant(g)
}

// take sends one grant. A holding or an error ends the seeking.
func (s *seeker) take(over bool) (*holding, answer, error) {
	if ok, ans, err := s.ready(over); !ok {
		return nil, ans, err
	}
	a, w := s.next(over)
	s.requests++
	ans := s.c.write(s.life, w, a.grantWithin(s.want))
	switch {
	case ans.Effect == decide.Applied:
		r, err := s.decode(a.version, ans.item)
		if err != nil {
			s.note(a) // it has landed, on something that a grant leaves in place
			return nil, ans, err
		}
		s.c.sweep(s.life, s.want, ans.item)
		return s.hold(a, r), ans, nil
	case ans.Effect == decide.Unknown:
		s.note(a)
		return nil, ans, nil
	case ans.Cause != decide.ConditionFailed:
		return nil, ans, nil
	}

	item, ok := s.c.shown(s.life, s.want.key, ans)
	if !ok {
		ans.Cause = decide.Unreachable
		return nil, ans, nil
	}
	h, err := s.refused(a, item)
	return h, ans, err
}

// met enters the record that a grant of ours met.
func (s *seeker) met(item protocol.Item) error {
	if item == nil && s.want.ifExists {
		return fmt.Errorf("%w: %v: IfExists acquires only a record that is there", ErrNotFound, s.want.key)
	}
	return s.see(item)
}

// refused looks at the record that a grant of ours met.
func (s *seeker) refused(last attempt, item protocol.Item) (*holding, error) {
	if err := s.met(item); err != nil {
		return nil, err
	}
	if s.want.side != nil {
		return s.landedUnseen(last, item)
	}
	if s.seen == nil {
		return nil, nil
	}
	// One of our own attempts that landed unseen: this one, delivered twice,
	// or an earlier one. It is worth having while half its trust is left.
	for _, a := range append(slices.Clone(s.tried), last) {
		if a.version != s.seen.Version {
			continue
		}
		if a.isWorthHaving(s.want.timing, s.c.now()) {
			return s.hold(a, *s.seen), nil
		}
		s.view.Ours = true
	}
	return nil, nil
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
	s.view.Ours = s.c.isUnsettled(s.want.key, r.Version) || slices.Contains(versionsOf(s.tried), r.Version)
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

// note remembers an attempt without an answer. What is too old to be named in
// every condition is remembered by the client: seen as holder, it is taken
// over at once.
func (s *seeker) note(a attempt) {
	s.tried = append(s.tried, a)
	if extra := len(s.tried) - manyTried; extra > 0 {
		s.c.leaveUnsettled(s.want.key, versionsOf(s.tried[:extra]))
		s.tried = slices.Delete(s.tried, 0, extra)
	}
}

// deadHolder returns whom a takeover of the record seen takes over: behind an
// attempt of our own that landed unseen, the holder whom that one took over.
func (s *seeker) deadHolder() *Record {
	if !s.view.Ours {
		return s.seen
	}
	for _, a := range s.tried {
		if a.version == s.seen.Version {
			return a.dead
		}
	}
	return nil
}

// hold makes a holding of a grant.
func (s *seeker) hold(a attempt, r Record) *holding {
	s.c.observed.Forget(s.want.key)
	h := s.c.newHolding(s.life, s.want, a, r)
	h.took = a.dead
	return h
}
