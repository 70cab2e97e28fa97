package ui

import (
	"time"
)

// Limits on the history of one key. When a limit is reached, the oldest entries are dropped.
const (
	mostSpans  = 200
	mostEvents = 500
	mostBeats  = 120 // maximum number of renewal times that are kept for one grant
)

// Span is one grant of a key, from the first read that showed the grant until the grant's end.
type Span struct {
	Grant string
	Owner string
	Token int64
	Value string // record's data as text, for example a leader's address
	// Beginning and end of the grant. To is zero while the grant is current.
	From, To time.Time
	Began    EventKind
	Ended    EventKind
	// Id of the previous grant, if this grant began with a hand-over or a takeover; otherwise
	// empty.
	Before string
	// Time at which the holder's lease expired; zero if the holder did not die.
	DiedAt   time.Time
	Renewals int
	Beats    []time.Time // times of the latest renewals
}

// History contains the grants and events of a key, as seen since this server started.
type History struct {
	// Grants and events before this time were dropped; zero if none were dropped.
	Since  time.Time
	Spans  []Span
	Events []Event
}

// add stores in the history what a read has shown of a key: its state and its events.
func (h *History) add(now Lock, events []Event) {
	for _, e := range events {
		h.Events = append(h.Events, e)
		switch e.Kind {
		case EventSeen, EventGrant:
			h.begin(e, "")
		case EventTakeover, EventHandOver:
			if s := h.span(e.FromGrant); s != nil && s.DiedAt.IsZero() {
				s.DiedAt = e.Died
			}
			h.end(e.FromGrant, e.Kind, e.At)
			h.begin(e, e.FromGrant)
		case EventDeath:
			if s := h.span(e.Grant); s != nil {
				s.DiedAt = e.Died
			}
		case EventBack:
			if s := h.span(e.Grant); s != nil {
				s.DiedAt = time.Time{}
			}
		case EventRelease, EventGone, EventFreed, EventBreak, EventDeletion:
			h.end(e.Grant, e.Kind, e.At)
		case EventDamage:
			for i := range h.Spans {
				h.end(h.Spans[i].Grant, e.Kind, e.At)
			}
		}
	}
	if holder := now.Holder; holder != nil {
		if s := h.span(holder.Grant); s != nil {
			if holder.Beat.Renewals > s.Renewals {
				s.Renewals = holder.Beat.Renewals
				s.Beats = newest(append(s.Beats, holder.Beat.Since), mostBeats)
			}
			s.Value = textOf(holder.Record.Data)
		}
	}
	if len(h.Spans) > mostSpans {
		h.Spans = newest(h.Spans, mostSpans)
		h.forgetBefore(h.Spans[0].From)
	}
	if len(h.Events) > mostEvents {
		h.Events = newest(h.Events, mostEvents)
		h.forgetBefore(h.Events[0].At)
	}
}

func (h *History) forgetBefore(t time.Time) {
	if t.After(h.Since) {
		h.Since = t
	}
}

func (h *History) begin(e Event, before string) {
	h.Spans = append(h.Spans, Span{
		Grant: e.Grant, Owner: e.Owner, Token: e.Token, From: e.At, Began: e.Kind, Before: before,
	})
}

func (h *History) end(grant string, how EventKind, at time.Time) {
	if s := h.span(grant); s != nil {
		s.To, s.Ended = at, how
	}
}

// span returns the Span of the given grant if that grant is current, and nil otherwise.
func (h *History) span(grant string) *Span {
	for i := len(h.Spans) - 1; i >= 0; i-- {
		if s := &h.Spans[i]; s.Grant == grant && s.To.IsZero() {
			return s
		}
	}
	return nil
}

// newest returns the last n elements of the slice all. If it drops elements, it copies the
// remaining elements, so that the memory of the dropped elements can be freed.
func newest[T any](all []T, n int) []T {
	if len(all) <= n {
		return all
	}
	return append([]T(nil), all[len(all)-n:]...)
}
