package ui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/layout"
)

const lease = 10 * time.Second

// start is the time of the reply to the first read in each test.
var start = time.Date(2026, 3, 4, 3, 12, 0, 0, time.UTC)

func at(d time.Duration) liveness.Reading {
	return liveness.Reading{Asked: start.Add(d), Answered: start.Add(d + 10*time.Millisecond)}
}

func grant(id, owner, version string, token int64) protocol.Record {
	return protocol.Record{Grant: id, Owner: owner, Version: version, Token: token, Lease: lease}
}

func held(r protocol.Record) holders.Found {
	return holders.Found{Key: protocol.Key{Partition: "k"}, Kind: holders.KindLock, Record: r}
}

func free() holders.Found {
	return holders.Found{Key: protocol.Key{Partition: "k"}, Kind: holders.KindLock, Record: protocol.Record{Released: true}}
}

// versionAt returns a record version (a UUID of version 7) whose timestamp is t.
func versionAt(t time.Time) string {
	ms := fmt.Sprintf("%012x", t.UnixMilli())
	return ms[:8] + "-" + ms[8:] + "-7000-8000-000000000000"
}

func nobodyBroke(string) (string, bool) { return "", false }

// kinds returns the kinds and details of the events as one line of text.
func kinds(events []Event) string {
	var all []string
	for _, e := range events {
		s := string(e.Kind)
		if e.Grant != "" {
			s += " " + e.Grant
		}
		if e.FromGrant != "" {
			s += " from " + e.FromGrant
		}
		if e.Reason != "" {
			s += ": " + e.Reason
		}
		all = append(all, s)
	}
	return strings.Join(all, "; ")
}

// watched is a key that the test reads repeatedly, with its history so far.
type watched struct {
	history History
	last    *Lock
	now     time.Duration // time of the latest read, counted from start
}

// look simulates a read of the key. d is the time since the previous read, and found is the
// result of the read. If found has no kind, the record no longer exists. look returns the events
// that the read causes.
func (w *watched) look(d time.Duration, found holders.Found) []Event {
	w.now += d
	var lock Lock
	var events []Event
	if found.Kind == "" {
		lock, events = vanished(*w.last, at(w.now), nobodyBroke)
	} else {
		lock, events = observe(w.last, found, at(w.now), liveness.Rule{}, true, nobodyBroke)
	}
	w.history.add(lock, events)
	w.last = &lock
	return events
}

func TestUIObserveDerivesEventsFromRecordChanges(t *testing.T) {
	type sight struct {
		after time.Duration
		found holders.Found
		want  string
	}
	a, a2, b := grant("a", "host/1", "v1", 1), grant("a", "host/1", "v2", 1), grant("b", "host/2", "v3", 2)
	mine := grant("c", "host/1", "v4", 2)
	stood, taken, early := a, b, b
	stood.Version = versionAt(start.Add(-time.Second)) // the holder wrote this version a second before the page read it
	taken.Grant, early.Grant = versionAt(start.Add(lease-time.Second)), versionAt(start.Add(8*time.Second))
	broken := &protocol.Broken{By: "operator", Reason: "stuck", Token: 1}
	brokenFree := free()
	brokenFree.Record.Broken = broken
	afterBreak := b
	afterBreak.Broken = broken
	bad := holders.Found{Key: protocol.Key{Partition: "k"}, Kind: holders.KindDamaged, Damage: &protocol.DecodeError{Attribute: "lease", Problem: "is missing"}}
	lab.Variants(t, map[string][]sight{
		"held when first seen":                   {{0, held(a), "seen a"}},
		"renewed":                                {{0, held(a), "seen a"}, {time.Second, held(a2), ""}},
		"released":                               {{0, held(a), "seen a"}, {time.Second, free(), "release a"}},
		"granted to another owner":               {{0, held(a), "seen a"}, {time.Second, free(), "release a"}, {time.Second, held(b), "grant b"}},
		"released and granted between two reads": {{0, held(a), "seen a"}, {time.Second, held(b), "release a; grant b"}},
		"handed over":                            {{0, held(a), "seen a"}, {time.Second, held(mine), "handover c from a"}},
		"died and was taken over":                {{0, held(a), "seen a"}, {lease + time.Second, held(a), "death a"}, {time.Second, held(b), "takeover b from a"}},
		"renewed after the lease expired":        {{0, held(a), "seen a"}, {lease + time.Second, held(a), "death a"}, {time.Second, held(a2), "back a"}},
		"freed after the holder died":            {{0, held(a), "seen a"}, {lease + time.Second, held(a), "death a"}, {time.Second, free(), "freed a"}},
		"broken by another program":              {{0, held(a), "seen a"}, {time.Second, brokenFree, "break a: stuck"}},
		"broken and granted between two reads":   {{0, held(a), "seen a"}, {time.Second, held(afterBreak), "break a: stuck; grant b"}},
		"a break of an earlier grant":            {{0, held(b), "seen b"}, {time.Second, brokenFree, "release b"}},
		"damaged and repaired":                   {{0, held(a), "seen a"}, {time.Second, bad, "damage: attribute lease is missing"}, {time.Second, held(b), "grant b; repair"}},
	}, func(t *testing.T, looks []sight) {
		var w watched
		for i, s := range looks {
			lab.Want(t, fmt.Sprint("read ", i), kinds(w.look(s.after, s.found)), s.want)
		}
	})
}

func TestUIShowsLockOfSessionAsDeadOnlyIfSessionIsDead(t *testing.T) {
	proto := lab.Must(records.Of(layout.Native{}))(t)
	key := proto.(protocol.Native).SessionKey("id")
	lock := &entry{lock: seen(held(protocol.Record{Session: "id"}), liveness.Beat{Version: "touch", Until: start.Add(time.Hour)})}
	row := &entry{lock: seen(holders.Found{Key: key, Kind: holders.KindSession}, liveness.Beat{Since: start, Until: start.Add(lease), Lease: lease})}
	b := newBoard(proto, liveness.Rule{})
	b.whole = true
	b.entries[key], b.under["id"] = row, map[*entry]bool{lock: true}
	judged := func(look liveness.Reading) liveness.Beat {
		b.judge("id", look)
		return lock.lock.Holder.Beat
	}
	if b := judged(at(0)); b.Dead || b.Lease != lease || !b.Until.Equal(start.Add(lease)) {
		t.Errorf("the session is live: %+v", b)
	}
	row.lock.Holder.Beat.Dead = true
	lab.Want(t, "dead if the session is dead", judged(at(0)).Dead, true)
	row.lock.Holder = nil
	lab.Want(t, "dead if the session has ended", judged(at(0)).Dead, true)
	delete(b.entries, key)
	lab.Want(t, "dead at once when the row is missing", judged(liveness.Reading{Asked: start, Answered: start}).Dead, false)
	lab.Want(t, "dead before the row was missing for a lease", judged(at(20*time.Second-1)).Dead, false)
	lab.Want(t, "dead after the row was missing for a lease", judged(at(20*time.Second)).Dead, true)
}

// seen returns the state of a lock that the server has read. beat contains the observed renewals
// of the holder.
func seen(f holders.Found, beat liveness.Beat) Lock {
	return Lock{Found: f, Holder: &Holder{Record: f.Record, Beat: beat}, Look: at(0)}
}

func TestUIHistoryHasOneSpanForEachGrant(t *testing.T) {
	var w watched
	w.look(0, held(grant("a", "host/1", "v1", 7)))
	w.look(time.Second, held(grant("a", "host/1", "v2", 7)))
	w.look(lease+time.Second, held(grant("a", "host/1", "v2", 7)))
	w.look(time.Second, held(grant("b", "host/2", "v3", 8)))
	w.look(time.Second, free())
	spans := w.history.Spans
	if len(spans) != 2 {
		t.Fatalf("spans: %+v", spans)
	}
	a, b := spans[0], spans[1]
	if a.Token != 7 || a.Renewals != 1 || len(a.Beats) != 1 || a.Ended != EventTakeover || a.DiedAt.IsZero() || !a.To.Equal(b.From) {
		t.Errorf("the first grant: %+v", a)
	}
	if b.Token != 8 || b.Began != EventTakeover || b.Before != "a" || b.Ended != EventRelease {
		t.Errorf("the second: %+v", b)
	}
}

func TestUIHistoryShowsHolderDeathAtLeaseEnd(t *testing.T) {
	a, b := grant("a", "host/1", versionAt(start), 1), grant(versionAt(start.Add(lease)), "host/2", "v3", 2)
	type look struct {
		after time.Duration
		found holders.Found
	}
	lab.Variants(t, map[string][]look{
		"seen dead, taken over later":         {{0, held(a)}, {lease + 2*time.Second, held(a)}, {172 * time.Second, held(b)}},
		"taken over before it was seen dead":  {{4 * time.Second, held(a)}, {7 * time.Second, held(b)}},
		"seen dead, record freed later":       {{0, held(a)}, {lease + 2*time.Second, held(a)}, {172 * time.Second, free()}},
		"seen dead, record deleted meanwhile": {{0, held(a)}, {lease + 2*time.Second, held(a)}, {172 * time.Second, holders.Found{}}},
	}, func(t *testing.T, looks []look) {
		var w watched
		for _, s := range looks {
			w.look(s.after, s.found)
		}
		want := at(looks[0].after).Answered.Add(lease)
		if took := at(w.now).Answered; want.After(took) {
			want = took
		}
		if s := w.history.Spans[0]; !s.DiedAt.Equal(want) || s.To.IsZero() {
			t.Errorf("the holder died at %v, want %v: %+v", s.DiedAt, want, s)
		}
	})
}

func TestUIHistoryKeepsOnlyNewestSpansAndEvents(t *testing.T) {
	var w watched
	before := lab.Heap()
	for i := range 2 * mostEvents {
		r := grant(string(rune('a'+i%7))+time.Duration(i).String(), "host/1", "v", int64(i))
		r.Data = make([]byte, 100_000)
		w.look(0, held(r))
	}
	lab.WantRange(t, "memory of the history in bytes", lab.Heap()-before, 0, 20_000_000)
	h := w.history
	lab.Want(t, "spans", len(h.Spans), mostSpans)
	lab.Want(t, "events", len(h.Events), mostEvents)
	lab.Want(t, "newest token", h.Spans[mostSpans-1].Token, 2*mostEvents-1)
}
