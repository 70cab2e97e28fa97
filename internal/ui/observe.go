package ui

import (
	"time"

	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Holder is the holder of a lock as observed.
type Holder struct {
	Record protocol.Record // the record at the last read
	Grant  string          // identifier of the grant
	Seen   time.Time       // time at which the grant was first seen
	Beat   liveness.Beat
}

// Lock is a key as it was at the last read.
type Lock struct {
	holders.Found
	Holder *Holder // observed holder; nil if the key is free
	Look   liveness.Reading
	Gone   bool // true if there is no record
}

// EventKind is a kind of event of a key.
type EventKind string

// Values of EventKind.
const (
	EventSeen     EventKind = "seen"     // the key was held when it was first read
	EventGrant    EventKind = "grant"    // a grant on a key that was free, or whose previous holder was not seen
	EventHandOver EventKind = "handover" // the holder passed the grant to another goroutine or command of the same owner
	EventTakeover EventKind = "takeover" // a grant that replaced a holder whose lease had expired
	EventDeath    EventKind = "death"    // the lease of the observed holder has expired
	EventBack     EventKind = "back"     // the holder appeared dead but has renewed
	EventRelease  EventKind = "release"
	EventGone     EventKind = "gone"  // the grant ended between two reads that were far apart, so it is not known how
	EventFreed    EventKind = "freed" // a dead holder's record was freed by an unknown client
	EventBreak    EventKind = "break"
	EventDeletion EventKind = "deletion"
	EventDamage   EventKind = "damage"
	EventRepair   EventKind = "repair"
)

// Event is something that has happened to a key. A change that is undone between two reads
// is not seen.
type Event struct {
	At     time.Time
	Kind   EventKind
	Grant  string
	Owner  string
	Token  int64
	From   *Holder   // the previous holder of a takeover or hand-over
	Died   time.Time // time at which the lease of the dead holder ended; set for a death or a takeover
	By     string    // operator who broke the grant, if known
	Reason string    // the reason for a break, or the problem of a damaged record
}

// observe returns the lock as a read shows it, and the events since the previous read.
// before is nil at the first read. first means that the table has not yet been read to its
// end, so a record may be older than it seems. broken returns the reason for a break through
// this page. Most layouts store the reasons of other breaks in the record.
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
			h.Beat.Dead = wasDead // only the session shows whether the holder is dead; the record does not
		}
		now.Holder = &h
		switch {
		case !stayed: // succession adds the event
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

// problemOf returns a description of the problem of a damaged item, or "" for any other
// item.
func problemOf(l Lock) string {
	if l.Damage == nil {
		return ""
	}
	return "attribute " + l.Damage.Error()
}

// vanished returns the lock and the events of a key whose record is gone.
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

// change collects the events of a key between two reads.
type change struct {
	at     time.Time
	broken func(grant string) (reason string, ok bool)
	stored *protocol.Broken // last break, as stored in the record
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

// died returns the time at which the lease of a dead holder ended, as observed.
func (c *change) died(h Holder) time.Time {
	if h.Beat.Until.After(c.at) { // the lease ended early, for example because its session was marked dead
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

// succession records how one grant ended and the next began. If both happened between the
// same two reads, they may be one event: the key of an expired lease was taken over, or a
// grant was handed over within one owner. Otherwise the key was free between them, but no
// read showed that.
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

// healthyFor returns the time after a read within which a holder that renews normally
// cannot have died and been taken over. A holder normally renews four times a lease.
func healthyFor(h Holder) time.Duration { return durations.Scale(h.Beat.Lease, 0.75) }

// lapsed reports whether the lease of h had expired when next was granted, as far as reads
// show. A version may contain its time, by its holder's clock. If both versions do, these
// two times decide, because the next holder saw the last renewal before this page did.
// Otherwise the observed end of the lease decides. After a long pause between two reads
// lapsed returns false, because h may have renewed and released unseen.
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
	return granted.Sub(renewed) >= durations.Scale(h.Beat.Lease, 0.9) // allows for a small difference between the clocks
}

// conditions records events of the key that are not about its holder.
func (c *change) conditions(before *Lock, now Lock) {
	was := before != nil && before.Kind == holders.KindDamaged
	switch {
	case now.Kind == holders.KindDamaged && !was:
		c.events = append(c.events, Event{At: c.at, Kind: EventDamage, Reason: problemOf(now)})
	case was && now.Kind != holders.KindDamaged:
		c.events = append(c.events, Event{At: c.at, Kind: EventRepair})
	}
}
