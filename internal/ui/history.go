package ui

import (
	"time"
)

// Limits for the history of one key. The newest entries are kept.
const (
	mostSpans  = 200
	mostEvents = 500
	mostBeats  = 120 // maximum number of renewals that are kept for one grant
)

// Span is one grant of a key, from the first read that showed it until its end.
type Span struct {
	Grant    string
	Owner    string
	Token    int64
	Value    string    // data of the record as text, for example a leader's address
	From, To time.Time // beginning and end; To is zero while the grant is current
	Began    EventKind
	Ended    EventKind
	Before   string    // previous grant, if it was taken over or handed over
	DiedAt   time.Time // time at which the lease expired, if the holder died; otherwise zero
	Renewals int
	Beats    []time.Time // times of the newest renewals
}

// History contains the grants and events of a key since this server started.
type History struct {
	Since  time.Time // time before which grants and events were dropped; zero if none were
	Spans  []Span
	Events []Event
}

// add adds the result of a read to the history.
func (h *History) add(now Lock, events []Event) {
	for _, e := range events {
		h.Events = append(h.Events, e)
		switch e.Kind {
		case EventSeen, EventGrant:
			h.begin(e, "")
		case EventTakeover, EventHandOver:
			if s := h.span(e.From.Grant); s != nil && s.DiedAt.IsZero() {
				s.DiedAt = e.Died
			}
			h.end(e.From.Grant, e.Kind, e.At)
			h.begin(e, e.From.Grant)
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

// span returns the span of a current grant, or nil if it has none.
func (h *History) span(grant string) *Span {
	for i := len(h.Spans) - 1; i >= 0; i-- {
		if s := &h.Spans[i]; s.Grant == grant && s.To.IsZero() {
			return s
		}
	}
	return nil
}

// newest returns the last n elements. If it drops any, it copies the others, so that the
// memory of the dropped elements is freed.
func newest[T any](all []T, n int) []T {
	if len(all) <= n {
		return all
	}
	return append([]T(nil), all[len(all)-n:]...)
}
