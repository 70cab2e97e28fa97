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

// rowView is a row in a web page's list of keys. Times are in milliseconds since 1970. The time in
// Granted is by the holder's clock. All other times are by this server's clock (see type clock).
type rowView struct {
	ID      int          `json:"i"`
	Key     string       `json:"key"`
	Sort    string       `json:"sort,omitempty"`
	Kind    holders.Kind `json:"kind"`
	State   State        `json:"state"`
	Owner   string       `json:"owner,omitempty"`
	Token   int64        `json:"token,omitempty"`
	Granted int64        `json:"granted,omitempty"`
	Seen    int64        `json:"seen,omitempty"` // time of the first read that showed the grant
	Held    int64        `json:"held,omitempty"` // milliseconds from the grant to the end of the lease, if the holder is dead
	Session string       `json:"session,omitempty"`
	Other   bool         `json:"other,omitempty"` // whether a client of another lock library made the grant
	Problem string       `json:"problem,omitempty"`
	beatView
}

// beatView contains the observed renewals of a holder: the fields of a rowView that change with
// each renewal.
type beatView struct {
	Since    int64 `json:"since,omitempty"`
	Until    int64 `json:"until,omitempty"`
	Lease    int64 `json:"lease,omitempty"`
	Renewals int   `json:"n,omitempty"`
}

// clock converts times to milliseconds since 1970. A change of the wall clock after the start
// of the server does not affect the results.
type clock struct{ base time.Time }

func (c clock) ms(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return c.base.Round(0).Add(t.Sub(c.base)).UnixMilli()
}

// row returns the row of e for the web pages. It contains the state of the key at the last
// read.
func (b *board) row(e *entry, c clock) rowView {
	l := e.lock
	v := rowView{
		ID: e.id, Key: l.Key.Partition, Sort: l.Key.Sort, Kind: l.Kind, State: stateAt(l, l.Look.Asked),
		Problem: problemOf(l),
	}
	r, h := l.Record, l.Holder
	v.Owner, v.Token, v.Granted = r.Owner, r.Token, wallMS(r.GrantedAt)
	if h == nil {
		return v
	}
	v.Seen, v.Session, v.Other = c.ms(h.Seen), r.Session, r.Grant == "" && l.Kind == holders.KindLock
	if v.State == Dead {
		v.Held = b.heldFor(*h).Milliseconds()
	}
	if l.Kind == holders.KindSession {
		v.Session, v.Owner = sessionOf(l.Key), r.Owner
	} else if _, missing := b.missing[r.Session]; r.Session != "" && !missing {
		return v // only the row of the session shows the renewals
	}
	v.beatView = beatOf(h.Beat, c)
	return v
}

// heldFor returns how long a dead holder held its lock, until its lease ended. It prefers the times
// in the records. The times of this server's reads can be too late, because the server may have
// started after the last renewal.
func (b *board) heldFor(h Holder) time.Duration {
	from, until, wrote := h.Record.GrantedAt, h.Beat.Until, h.Record
	if row := b.sessionRow(h.Record.Session); row != nil {
		wrote = row.lock.Record
	}
	written := protocol.VersionTime(wrote.Version)
	switch {
	case from.IsZero():
		from = h.Seen
	case !written.IsZero() && wrote.Released:
		until = written
	case !written.IsZero() && wrote.Lease > 0:
		until = written.Add(wrote.Lease)
	}
	return max(until.Sub(from), 0)
}

func beatOf(b liveness.Beat, c clock) beatView {
	return beatView{Since: c.ms(b.Since), Until: c.ms(b.Until), Lease: b.Lease.Milliseconds(), Renewals: b.Renewals}
}

func wallMS(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// changes contains the changes in the list of keys since the last message to the web pages.
type changes struct {
	Rows  []rowView  `json:"rows,omitempty"`
	Beats [][5]int64 `json:"beats,omitempty"` // elements: id, since, until, lease, number of renewals
	Gone  []int      `json:"gone,omitempty"`
}

func (c changes) empty() bool { return len(c.Rows)+len(c.Beats)+len(c.Gone) == 0 }

// take returns the unsent changes, and marks them as sent.
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

// all returns the rows for a new web page. They are the rows that the other pages show after the
// last flush.
func (b *board) all() []rowView {
	var rows []rowView
	for _, e := range b.entries {
		if e.toldOf {
			rows = append(rows, e.told)
		}
	}
	return rows
}

// lockView contains the details and the history of one key.
type lockView struct {
	Row    *rowView        `json:"row,omitempty"` // nil if the key has no record
	Key    string          `json:"key"`
	Sort   string          `json:"sort,omitempty"`
	Holder *holderView     `json:"holder,omitempty"`
	Free   json.RawMessage `json:"free,omitempty"` // record of the key if the key is free and the layout keeps the record
	Spans  []spanView      `json:"spans"`
	Events []eventView     `json:"events"`
	Known  int64           `json:"known"` // earliest time for which the history is complete
}

type holderView struct {
	Grant   string          `json:"grant"`
	Record  json.RawMessage `json:"record"` // record in the format that "leasehold get" prints
	Session string          `json:"session,omitempty"`
	Seen    int64           `json:"seen,omitempty"`
	Dead    bool            `json:"dead,omitempty"`
	beatView
}

type spanView struct {
	Grant    string    `json:"grant"`
	Owner    string    `json:"owner"`
	Token    int64     `json:"token,omitempty"`
	Value    string    `json:"value,omitempty"`
	From     int64     `json:"from"`
	To       int64     `json:"to,omitempty"`
	Began    EventKind `json:"began"`
	Ended    EventKind `json:"ended,omitempty"`
	Before   string    `json:"before,omitempty"`
	Died     int64     `json:"died,omitempty"`
	Renewals int       `json:"n"`
	Beats    []int64   `json:"beats,omitempty"`
}

type eventView struct {
	At        int64     `json:"at"`
	Kind      EventKind `json:"kind"`
	Owner     string    `json:"owner,omitempty"`
	Token     int64     `json:"token,omitempty"`
	FromOwner string    `json:"fromOwner,omitempty"`
	FromToken int64     `json:"fromToken,omitempty"`
	By        string    `json:"by,omitempty"`
	Reason    string    `json:"reason,omitempty"`
}

// lock returns the details and the history of a key. Both are empty if no read has shown the
// key.
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
	switch h := e.lock.Holder; {
	case h != nil:
		v.Holder = &holderView{
			Grant: h.Grant, Record: recordJSON(h.Record), Session: h.Record.Session,
			Seen: c.ms(h.Seen), Dead: h.Beat.Dead, beatView: beatOf(h.Beat, c),
		}
	case e.lock.Record.Released:
		v.Free = recordJSON(e.lock.Record)
	}
	for _, s := range e.history.Spans {
		span := spanView{
			Grant: s.Grant, Owner: s.Owner, Token: s.Token, Value: s.Value, From: c.ms(s.From), To: c.ms(s.To),
			Began: s.Began, Ended: s.Ended, Before: s.Before, Died: c.ms(s.DiedAt), Renewals: s.Renewals,
		}
		for _, t := range s.Beats {
			span.Beats = append(span.Beats, c.ms(t))
		}
		v.Spans = append(v.Spans, span)
	}
	for _, ev := range e.history.Events {
		v.Events = append(v.Events, eventView{
			At: c.ms(ev.At), Kind: ev.Kind, Owner: ev.Owner, Token: ev.Token,
			FromOwner: ev.FromOwner, FromToken: ev.FromToken, By: ev.By, Reason: ev.Reason,
		})
	}
	return v
}

// recordJSON returns a record in the format that "leasehold get" prints.
func recordJSON(r protocol.Record) json.RawMessage {
	b, err := json.Marshal(holders.RecordOf(r))
	if err != nil {
		b, _ = json.Marshal(map[string]string{"problem": err.Error()})
	}
	return b
}

// textOf returns data as a string, or "" if data is too long or is not text.
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
