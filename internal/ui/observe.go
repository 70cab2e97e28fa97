package ui

import (
	"time"

	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Holder is the holder of a lock, according to the reads of this server.
type Holder struct {
	Record protocol.Record // the holder's record at the last read
	Grant  string          // string that identifies the grant (liveness.GrantOf)
	Seen   time.Time       // time of the first read that showed the grant
	Beat   liveness.Beat
}

// Lock is the state of a key at the last read.
type Lock struct {
	holders.Found
	Holder *Holder // holder at the last read; nil if the key is free
	Look   liveness.Reading
	Gone   bool // the key has no record
}

// EventKind is the kind of an Event.
type EventKind string

// Kinds of events.
const (
	EventSeen  EventKind = "seen"  // the first read of the key showed it held
	EventGrant EventKind = "grant" // a grant on a free key, or on a key whose previous holder no read has shown
	// The next grant has the same owner, and no read showed the key free: probably a hand-over.
	EventHandOver EventKind = "handover"
	EventTakeover EventKind = "takeover" // a new holder replaced a holder whose lease had expired
	EventDeath    EventKind = "death"    // the holder's lease has expired without a renewal
	EventBack     EventKind = "back"     // the holder appeared dead, but has now renewed
	EventRelease  EventKind = "release"
	// The grant ended, but reads do not show how, because the two reads around its end were far
	// apart.
	EventGone     EventKind = "gone"
	EventFreed    EventKind = "freed" // the key of a dead holder has become free; reads do not show which client changed the record
	EventBreak    EventKind = "break"
	EventDeletion EventKind = "deletion"
	EventDamage   EventKind = "damage"
	EventRepair   EventKind = "repair"
)

// Event is a change of a key's state. If a change is undone before the next read, no read shows
// it.
type Event struct {
	At    time.Time
	Kind  EventKind
	Grant string
	Owner string
	Token int64
	// Previous grant, if the event is a takeover or a hand-over. A history keeps many events, so an
	// event must not refer to records, which may be large.
	FromGrant, FromOwner string
	FromToken            int64
	// Time at which the dead holder's lease expired, if the event is a death or a takeover.
	Died   time.Time
	By     string // operator who broke the grant; empty if unknown
	Reason string // reason for a break, or problem of a damaged record
}

// observe returns the state of a lock after a read, and the events since the state "before". This
// state is nil at the first read of the key. If "first" is true, the grant may be older than the
// server. The function "broken" returns the reason if a grant was broken through this server. If
// the record also shows the break, observe uses the reason in the record.
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
			// The record does not show whether the holder is dead. Only the row of its session
			// shows that.
			h.Beat.Dead = wasDead
		}
		now.Holder = &h
		switch {
		case !stayed: // a new grant; the method succession adds its event
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

// problemOf returns the problem of a damaged item, or "" if the item is not damaged.
func problemOf(l Lock) string {
	if l.Damage == nil {
		return ""
	}
	return "attribute " + l.Damage.Error()
}

// vanished returns the state and the events of a key whose record was deleted after the
// previous read.
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

// A change collects the events of a key between two successive reads of the key.
type change struct {
	at     time.Time
	broken func(grant string) (reason string, ok bool)
	stored *protocol.Broken // last break according to the record
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

// died returns the time at which the lease of a dead holder expired, according to the reads.
func (c *change) died(h Holder) time.Time {
	// The holder is dead although its lease has not expired yet: for example, a client has marked
	// its session dead. So the lease ended early, and this read was the first to show that.
	if h.Beat.Until.After(c.at) {
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

// succession adds the events for the end of one grant and the beginning of the next. A single event
// can stand for both: a takeover of an expired lease, or a hand-over between grants with the same
// owner. Otherwise the key was free in between.
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
	if from != nil {
		e.FromGrant, e.FromOwner, e.FromToken = from.Grant, from.Record.Owner, from.Record.Token
	}
	if how == EventTakeover {
		e.Died = c.died(*from)
	}
	if began.Beat.Dead {
		c.add(EventDeath, *began)
	}
}

// healthyFor returns three quarters of a holder's lease. If the holder renews on time, four times
// per lease, the rest of its lease is never shorter than this.
func healthyFor(h Holder) time.Duration { return durations.Scale(h.Beat.Lease, 0.75) }

// lapsed reports whether the lease of h had expired when the key was granted to the holder "next",
// as far as reads show. If no read showed h dead, and the last read of h was at least healthyFor
// before this read, lapsed returns false: h may have renewed and released in between.
func (c *change) lapsed(h Holder, seen liveness.Reading, next Holder) bool {
	if h.Beat.Dead {
		return true
	}
	if c.at.Sub(seen.Asked) >= healthyFor(h) {
		return false
	}
	// Some layouts store the time of each write, by the writer's clock, in versions and grant ids.
	// If both times are known, use them, because this server may have read the last renewal of h
	// later than the next holder did.
	renewed, granted := protocol.VersionTime(h.Record.Version), protocol.VersionTime(next.Record.Grant)
	if renewed.IsZero() || granted.IsZero() || h.Record.Session != "" {
		return !c.at.Before(h.Beat.Until)
	}
	return granted.Sub(renewed) >= durations.Scale(h.Beat.Lease, 0.9) // 0.9 allows for a small difference between the clocks
}

// conditions adds an event if the record has become damaged, or has been repaired.
func (c *change) conditions(before *Lock, now Lock) {
	was := before != nil && before.Kind == holders.KindDamaged
	switch {
	case now.Kind == holders.KindDamaged && !was:
		c.events = append(c.events, Event{At: c.at, Kind: EventDamage, Reason: problemOf(now)})
	case was && now.Kind != holders.KindDamaged:
		c.events = append(c.events, Event{At: c.at, Kind: EventRepair})
	}
}
