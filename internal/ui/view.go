package ui

import (
	"encoding/json"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// rowView is a key as the list shows it. Times are milliseconds since 1970 by this
// server's steady clock, except Granted, which is by the holder's.
type rowView struct {
	ID        int           `json:"i"`
	Key       string        `json:"key"`
	Sort      string        `json:"sort,omitempty"`
	Kind      holders.Kind  `json:"kind"`
	State     State         `json:"state"`
	Owner     string        `json:"owner,omitempty"`
	Token     int64         `json:"token,omitempty"`
	Granted   int64         `json:"granted,omitempty"`
	Seen      int64         `json:"seen,omitempty"` // the first sight of the grant
	Mode      protocol.Mode `json:"mode,omitempty"`
	Holders   int           `json:"holders,omitempty"`
	Intent    string        `json:"intent,omitempty"` // the owner that waits to write
	Session   string        `json:"session,omitempty"`
	Semaphore string        `json:"semaphore,omitempty"` // the key may be a permit of it
	Permit    int           `json:"permit,omitempty"`
	Permits   int           `json:"permits,omitempty"`
	Most      int           `json:"most,omitempty"`
	Other     bool          `json:"other,omitempty"` // granted by another library
	Problem   string        `json:"problem,omitempty"`
	beatView
}

// beatView is what each renewal changes.
type beatView struct {
	Since    int64 `json:"since,omitempty"`
	Until    int64 `json:"until,omitempty"`
	Lease    int64 `json:"lease,omitempty"`
	Renewals int   `json:"n,omitempty"`
}

// clock turns times into the page's: steady, whatever becomes of the wall clock.
type clock struct{ base time.Time }

func (c clock) ms(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return c.base.Round(0).Add(t.Sub(c.base)).UnixMilli()
}

// row is e as the list shows it: as it stood when it was looked at.
func (b *board) row(e *entry, c clock) rowView {
	l := e.lock
	v := rowView{
		ID: e.id, Key: l.Key.Partition, Sort: l.Key.Sort, Kind: l.Kind, State: stateAt(l, l.Look.Asked),
		Holders: len(l.Holders), Problem: problemOf(l), Permits: l.Permits.N, Most: l.Permits.Most,
	}
	if l.Intent != nil {
		v.Intent = l.Intent.Owner
	}
	if sem, n, ok := protocol.PermitOf(b.proto, l.Key); ok && l.Kind == holders.KindLock {
		v.Semaphore, v.Permit = sem.Partition, n
	}
	if len(l.Holders) == 0 {
		v.Token = l.Free.Token
		if !l.Free.Released {
			return v
		}
		v.Owner, v.Granted = l.Free.Owner, wallMS(l.Free.GrantedAt)
		return v
	}
	h := last(l.Holders)
	r := h.Record
	v.Owner, v.Token, v.Granted, v.Mode = r.Owner, r.Token, wallMS(r.GrantedAt), r.Mode
	v.Seen, v.Session, v.Other = c.ms(h.Seen), r.Session, r.Grant == "" && l.Kind == holders.KindLock
	if l.Kind == holders.KindSession {
		v.Session, v.Owner = sessionOf(l.Key), r.Owner
	} else if _, missing := b.missing[r.Session]; r.Session != "" && !missing {
		return v // its session's beat is its own
	}
	v.beatView = beatOf(h.Beat, c)
	return v
}

func beatOf(b liveness.Beat, c clock) beatView {
	return beatView{Since: c.ms(b.Since), Until: c.ms(b.Until), Lease: b.Lease.Milliseconds(), Renewals: b.Renewals}
}

// last is the holder who keeps the lock for longest: of those that live, the one whose
// lease ends last; of dead ones the first.
func last(all []Holder) Holder {
	best := all[0]
	for _, h := range all[1:] {
		if best.Beat.Dead && !h.Beat.Dead || !best.Beat.Dead && !h.Beat.Dead && h.Beat.Until.After(best.Beat.Until) {
			best = h
		}
	}
	return best
}

func wallMS(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// changes is what has become of the list since the pages were told of it last.
type changes struct {
	Rows  []rowView  `json:"rows,omitempty"`
	Beats [][5]int64 `json:"beats,omitempty"` // id, since, until, lease, renewals
	Gone  []int      `json:"gone,omitempty"`
}

func (c changes) empty() bool { return len(c.Rows)+len(c.Beats)+len(c.Gone) == 0 }

// take returns what has changed and forgets that it has.
func (b *board) take(c clock) changes {
	var out changes
	for e := range b.changed {
		if e.lock.Gone || b.over(e) {
			if e.toldOf {
				out.Gone = append(out.Gone, e.id)
			}
			e.told, e.toldOf = rowView{}, false
			continue
		}
		v := b.row(e, c)
		switch same := sameButBeat(v, e.told); {
		case e.toldOf && v == e.told:
		case e.toldOf && same:
			out.Beats = append(out.Beats, [5]int64{int64(v.ID), v.Since, v.Until, v.Lease, int64(v.Renewals)})
		default:
			out.Rows = append(out.Rows, v)
		}
		e.told, e.toldOf = v, true
	}
	clear(b.changed)
	return out
}

func sameButBeat(a, b rowView) bool {
	a.beatView, b.beatView = beatView{}, beatView{}
	return a == b
}

// all returns what the pages were told of.
func (b *board) all() []rowView {
	var rows []rowView
	for _, e := range b.entries {
		if e.toldOf {
			rows = append(rows, e.told)
		}
	}
	return rows
}

// lockView is one key with its history.
type lockView struct {
	Row     *rowView        `json:"row,omitempty"` // none: there is no record
	Key     string          `json:"key"`
	Sort    string          `json:"sort,omitempty"`
	Holders []holderView    `json:"holders,omitempty"`
	Intent  *holderView     `json:"intent,omitempty"`
	Free    json.RawMessage `json:"free,omitempty"` // the record that is kept of a free key
	Spans   []spanView      `json:"spans"`
	Events  []eventView     `json:"events"`
	Known   int64           `json:"known"` // since then all is told that was seen
}

type holderView struct {
	Grant   string          `json:"grant"`
	Record  json.RawMessage `json:"record"` // as leasehold get prints it
	Mode    protocol.Mode   `json:"mode,omitempty"`
	Session string          `json:"session,omitempty"`
	Seen    int64           `json:"seen,omitempty"`
	Dead    bool            `json:"dead,omitempty"`
	beatView
}

type spanView struct {
	Grant    string        `json:"grant"`
	Owner    string        `json:"owner"`
	Token    int64         `json:"token,omitempty"`
	Mode     protocol.Mode `json:"mode,omitempty"`
	Value    string        `json:"value,omitempty"`
	From     int64         `json:"from"`
	To       int64         `json:"to,omitempty"`
	Began    EventKind     `json:"began"`
	Ended    EventKind     `json:"ended,omitempty"`
	Before   string        `json:"before,omitempty"`
	Died     int64         `json:"died,omitempty"`
	Renewals int           `json:"n"`
	Beats    []int64       `json:"beats,omitempty"`
}

type eventView struct {
	At        int64         `json:"at"`
	Kind      EventKind     `json:"kind"`
	Owner     string        `json:"owner,omitempty"`
	Token     int64         `json:"token,omitempty"`
	Mode      protocol.Mode `json:"mode,omitempty"`
	FromOwner string        `json:"fromOwner,omitempty"`
	FromToken int64         `json:"fromToken,omitempty"`
	By        string        `json:"by,omitempty"`
	Reason    string        `json:"reason,omitempty"`
}

// lock is a key with its history. One that nobody has seen has neither.
func (b *board) lock(key protocol.Key, c clock) lockView {
	v := lockView{Key: key.Partition, Sort: key.Sort, Spans: []spanView{}, Events: []eventView{}, Known: c.ms(c.base)}
	e := b.entries[key]
	if e == nil {
		e = &entry{lock: Lock{Gone: true}, history: History{Since: b.forgotten}}
	}
	if e.history.Since.After(c.base) {
		v.Known = c.ms(e.history.Since)
	}
	if !e.lock.Gone {
		row := b.row(e, c)
		v.Row = &row
	}
	for _, h := range e.lock.Holders {
		v.Holders = append(v.Holders, holderOf(h, c))
	}
	if e.lock.Intent != nil {
		i := holderOf(Holder{Record: *e.lock.Intent, Grant: e.lock.Intent.Grant}, c)
		v.Intent = &i
	}
	if e.lock.Free.Released {
		v.Free = recordJSON(e.lock.Free)
	}
	for _, s := range e.history.Spans {
		span := spanView{
			Grant: s.Grant, Owner: s.Owner, Token: s.Token, Mode: s.Mode, Value: s.Value, From: c.ms(s.From), To: c.ms(s.To),
			Began: s.Began, Ended: s.Ended, Before: s.Before, Died: c.ms(s.DiedAt), Renewals: s.Renewals,
		}
		for _, t := range s.Beats {
			span.Beats = append(span.Beats, c.ms(t))
		}
		v.Spans = append(v.Spans, span)
	}
	for _, ev := range e.history.Events {
		view := eventView{At: c.ms(ev.At), Kind: ev.Kind, Owner: ev.Owner, Token: ev.Token, Mode: ev.Mode, By: ev.By, Reason: ev.Reason}
		if ev.From != nil {
			view.FromOwner, view.FromToken = ev.From.Record.Owner, ev.From.Record.Token
		}
		v.Events = append(v.Events, view)
	}
	return v
}

func holderOf(h Holder, c clock) holderView {
	return holderView{
		Grant: h.Grant, Record: recordJSON(h.Record), Mode: h.Record.Mode, Session: h.Record.Session,
		Seen: c.ms(h.Seen), Dead: h.Beat.Dead, beatView: beatOf(h.Beat, c),
	}
}

// recordJSON is a record as leasehold get prints it.
func recordJSON(r protocol.Record) json.RawMessage {
	b, err := json.Marshal(holders.RecordOf(r))
	if err != nil {
		b, _ = json.Marshal(map[string]string{"problem": err.Error()})
	}
	return b
}

// textOf is data as text; "" if it is none.
func textOf(data []byte) string {
	const longest = 200
	if len(data) > longest || !utf8.Valid(data) {
		return ""
	}
	for _, r := range string(data) {
		if !unicode.IsPrint(r) {
			return ""
		}
	}
	return string(data)
}
