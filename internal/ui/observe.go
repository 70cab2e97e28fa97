package ui

import (
	"time"

	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Holder is who holds a lock, as seen.
type Holder struct {
	Record protocol.Record // as stored at the last look
	Grant  string          // tells it from the next
	Seen   time.Time       // the first sight of the grant
	Beat   liveness.Beat
}

// Lock is a key as seen at the last look.
type Lock struct {
	holders.Found
	Holder *Holder // nil if nobody holds it
	Look   liveness.Reading
	Gone   bool // there is no record
}

// EventKind is what has happened to a key.
type EventKind string

// Values of EventKind.
const (
	EventSeen     EventKind = "seen"     // held when first looked at
	EventGrant    EventKind = "grant"    // of a free key, or nobody saw from whom
	EventHandOver EventKind = "handover" // to another goroutine or command of the same owner
	EventTakeover EventKind = "takeover" // from a holder whose lease had run out
	EventDeath    EventKind = "death"    // its lease has run out
	EventBack     EventKind = "back"     // it was dead and renewed after all
	EventRelease  EventKind = "release"
	EventGone     EventKind = "gone"  // ended between two looks that were far apart: nobody saw how
	EventFreed    EventKind = "freed" // a dead holder's record was freed, and nothing says by whom
	EventBreak    EventKind = "break"
	EventDeletion EventKind = "deletion"
	EventDamage   EventKind = "damage"
	EventRepair   EventKind = "repair"
)

// Event is one thing that has happened to a key, as far as looks can tell: what comes
// and goes between two of them is not seen.
type Event struct {
	At     time.Time
	Kind   EventKind
	Grant  string
	Owner  string
	Token  int64
	From   *Holder   // of a takeover or hand-over: who had it before
	Died   time.Time // when the holder's lease ended, of a death; of a takeover that of From
	By     string    // of a break, if it is known
	Reason string    // of a break; of damage: the problem
}

// observe is what a look at a key shows, and what has happened since the look before.
// before is nil at the first look. first: the table has not been read whole yet, so
// that nothing is known to be new. broken says why a grant was broken through this
// page; of other breaks most layouts' records tell.
func observe(before *Lock, found holders.Found, look liveness.Reading, by liveness.Rule, first bool, broken func(grant string) (reason string, ok bool)) (Lock, []Event) {
	now := Lock{Found: found, Look: look}
	c := &change{at: look.Answered, broken: broken, stored: found.Record.Broken}
	if found.Held() {
		h := Holder{Grant: liveness.GrantOf(found.Record), Seen: look.Answered}
		stayed := before != nil && before.Holder != nil && before.Holder.Grant == h.Grant
		if stayed {
			h = *before.Holder
		}
		wasDead := h.Beat.Dead
		h.Record = found.Record
		h.Beat = by.Next(h.Beat, h.Record, look)
		if found.Kind == holders.KindLock && h.Record.Session != "" {
			h.Beat.Dead = wasDead // its session says so, not its record
		}
		now.Holder = &h
		switch {
		case !stayed: // see succession
		case h.Beat.Dead && !wasDead:
			c.add(EventDeath, h)
		case wasDead && !h.Beat.Dead:
			c.add(EventBack, h)
		}
	}
	c.succession(before, now, first)
	c.conditions(before, now)
	return now, c.events
}

// problemOf says why a damaged item does not read; "" of any other.
func problemOf(l Lock) string {
	if l.Damage == nil {
		return ""
	}
	return "attribute " + l.Damage.Error()
}

// vanished is what it means that there is no record any more.
func vanished(before Lock, look liveness.Reading, broken func(string) (string, bool)) (Lock, []Event) {
	now := Lock{Found: holders.Found{Key: before.Key, Kind: before.Kind}, Look: look, Gone: true}
	c := &change{at: look.Answered, broken: broken}
	switch h := before.Holder; {
	case h == nil:
		c.events = append(c.events, Event{At: c.at, Kind: EventDeletion})
	case !c.byBreak(*h):
		c.add(EventDeletion, *h)
	}
	return now, c.events
}

// change collects what has happened to a key between two looks.
type change struct {
	at     time.Time
	broken func(grant string) (reason string, ok bool)
	stored *protocol.Broken // the last break that the record tells of
	events []Event
}

func (c *change) add(kind EventKind, h Holder) *Event {
	c.events = append(c.events, Event{
		At: c.at, Kind: kind, Grant: h.Grant, Owner: h.Record.Owner, Token: h.Record.Token,
	})
	e := &c.events[len(c.events)-1]
	if kind == EventDeath {
		e.Died = c.died(h)
	}
	return e
}

// died returns when the lease of a dead holder ended, as it was observed.
func (c *change) died(h Holder) time.Time {
	if h.Beat.Until.After(c.at) { // it ended before its time, as a session does that is marked dead
		return c.at
	}
	return h.Beat.Until
}

func (c *change) byBreak(h Holder) bool {
	reason, ok := c.broken(h.Grant)
	if c.stored != nil && c.stored.Token == h.Record.Token && c.stored.Token != 0 {
		e := c.add(EventBreak, h)
		e.By, e.Reason = c.stored.By, c.stored.Reason
		return true
	}
	if ok {
		c.add(EventBreak, h).Reason = reason
	}
	return ok
}

// succession says how a grant ended and another began. What ended and what began between
// the same two looks may belong together: a lease that had run out was taken over; a grant
// that the same owner has again was handed over. Otherwise the key was free in between, and
// nobody saw it.
func (c *change) succession(before *Lock, now Lock, first bool) {
	var ended, from *Holder
	began, how := now.Holder, EventGrant
	if before != nil {
		ended = before.Holder
	} else if first {
		how = EventSeen
	}
	switch {
	case ended == nil:
	case began != nil && began.Grant == ended.Grant:
		return
	case c.byBreak(*ended):
	case began != nil && c.lapsed(*ended, before.Look, *began):
		from, how = ended, EventTakeover
	case began != nil && now.Kind == holders.KindLock && ended.Record.Owner != "" && ended.Record.Owner == began.Record.Owner:
		from, how = ended, EventHandOver
	case ended.Beat.Dead && began == nil && now.Kind != holders.KindDamaged:
		c.add(EventFreed, *ended)
	case began != nil && c.at.Sub(before.Look.Asked) >= healthyFor(*ended):
		c.add(EventGone, *ended)
	case now.Kind != holders.KindDamaged:
		c.add(EventRelease, *ended)
	}
	if began == nil {
		return
	}
	e := c.add(how, *began)
	if e.From = from; how == EventTakeover {
		e.Died = c.died(*from)
	}
	if began.Beat.Dead {
		c.add(EventDeath, *began)
	}
}

// healthyFor is how long after a look a holder that renews as it should, four times a
// lease, has certainly not died and been taken over.
func healthyFor(h Holder) time.Duration { return durations.Scale(h.Beat.Lease, 0.75) }

// lapsed reports whether the lease of h had run out when next was granted, as far as
// looks can tell. Who took over saw the last renewal earlier than this page did: so
// what counts is the time in the versions, by the clocks of both. Where they have none,
// it is the lease as it was observed. After a longer pause between two looks h may have
// renewed and released, and nobody saw it.
func (c *change) lapsed(h Holder, seen liveness.Reading, next Holder) bool {
	if h.Beat.Dead {
		return true
	}
	if c.at.Sub(seen.Asked) >= healthyFor(h) {
		return false
	}
	renewed, granted := protocol.VersionTime(h.Record.Version), protocol.VersionTime(next.Record.Grant)
	if renewed.IsZero() || granted.IsZero() || h.Record.Session != "" {
		return !c.at.Before(h.Beat.Until)
	}
	return granted.Sub(renewed) >= durations.Scale(h.Beat.Lease, 0.9) // clocks differ a little
}

// conditions says what has become of the record apart from its holders.
func (c *change) conditions(before *Lock, now Lock) {
	was := before != nil && before.Kind == holders.KindDamaged
	switch {
	case now.Kind == holders.KindDamaged && !was:
		c.events = append(c.events, Event{At: c.at, Kind: EventDamage, Reason: problemOf(now)})
	case was && now.Kind != holders.KindDamaged:
		c.events = append(c.events, Event{At: c.at, Kind: EventRepair})
	}
}
