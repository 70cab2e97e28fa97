package leasehold

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/observed"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// checkAlone refuses, for a read/write lock, what needs a record of its own.
func (r *request) checkAlone(c *Client, p policy, ch *changes) error {
	switch {
	case r.mode == protocol.ModePlain:
		return nil
	case !ch.none():
		return c.unsupported("data or attributes of a read/write lock")
	case p == deleteRecord:
		return c.unsupported("DeleteOnRelease of a read/write lock")
	}
	return nil
}

// mayShare reports whether a request can share the grant of h.
func (r *request) mayShare(h *holding) bool {
	return h.want.mode == r.mode || h.want.mode == protocol.ModeWrite && r.mode == protocol.ModeRead
}

// protoOf returns the protocol by which a grant of the request is written and read.
func (r *request) protoOf(c *Client, grant string) protocol.Protocol {
	if r.side == nil {
		return c.proto
	}
	return r.side.Of(grant)
}

// readersFirst is how long other writers let readers go first after this one: the
// longest pause of a reader who watched this writer or its intent, and the time that
// a read and a grant take.
func (h *holding) readersFirst() time.Duration {
	since := h.granted.Mono
	if h.want.intended != nil {
		since = h.want.intended.Mono
	}
	return decide.Pause(h.c.now().Mono-since, h.c.cfg.PollMin, h.c.cfg.PollMax, 1) + 2*h.c.cfg.PollMin
}

// readWriteView is what a waiter knows of a read/write lock.
type readWriteView struct {
	absent  bool // there was no record
	by      protocol.Blockers
	all     []blocker                  // those of by that are not its own intents
	spent   []Record                   // own attempts to read that were applied, but with too little trust left
	intents []attempt                  // posted, or unanswered; oldest first
	due     time.Duration              // monotonic: when the intent is posted or renewed
	entries observed.Watcher[entryKey] // of all
}

// blocker is a holder, or a writer's intent, that a grant must wait for.
type blocker struct {
	Record
	dead time.Duration // monotonic: when it is dead, if it is not renewed
	ours bool          // an unsettled attempt of this client, which no client treats as held
}

// observeEntries is observe for a read/write lock.
func (w *waiter) observeEntries(item protocol.Item) error {
	now := w.c.now()
	w.view.Known, w.view.Free, w.view.Ours = true, true, false
	w.rw.absent, w.rw.all = item == nil, nil
	w.rw.by = protocol.Blockers{}
	before := w.seen
	w.seen = nil
	if item == nil {
		return nil
	}
	by, err := w.want.side.Blockers(item, time.Now())
	if err != nil {
		return w.c.recordError(w.want.key, item, err)
	}
	w.rw.by = by
	w.others.Store(0)
	if by.Any {
		w.others.Store(int32(len(by.By) - 1))
	}
	w.view.Grant = math.MaxInt64
	var watched []entryKey
	for _, r := range by.By {
		if slices.Contains(attempts.Versions(w.rw.intents), r.Version) {
			continue
		}
		b := blocker{Record: recordOf(r), dead: math.MinInt64}
		if b.ours = w.c.isUnsettled(w.want.key, b.Version) || slices.Contains(w.tried.Versions(), b.Version); !b.ours {
			v := w.c.observeEntry(b.Record, now)
			watched = append(watched, entryKeyOf(b.Record))
			b.dead = decide.DeadByVersion(v.Since.Mono, b.Lease)
			w.view.Grant = min(w.view.Grant, v.Granted)
		}
		w.rw.all = append(w.rw.all, b)
	}
	w.rw.entries.Only(watched...)
	last, first := w.rw.lastToGo()
	if last == nil {
		return nil
	}
	w.view.Free = false
	decisive := last
	if by.Any {
		decisive = first
	}
	w.view.Dead, w.view.Ours = decisive.dead, decisive.ours
	seen := w.rw.all[0].Record
	if seen.mode == protocol.ModeReadersFirst && len(w.rw.all) > 1 {
		seen = w.rw.all[1].Record // somebody that an error can name
	}
	w.seen = &seen
	w.holder.Store(&seen)
	if changed := before == nil || grantIDOf(*before) != grantIDOf(seen); changed && !w.view.Ours {
		w.c.emit(w.ctx, Event{Kind: EventWaiting, Key: w.want.key, Holder: &seen})
	}
	return nil
}

// lastToGo returns which blocker will be dead last, and which first.
func (v *readWriteView) lastToGo() (last, first *blocker) {
	for i := range v.all {
		b := &v.all[i]
		if last == nil || b.dead > last.dead {
			last = b
		}
		if first == nil || b.dead < first.dead {
			first = b
		}
	}
	return last, first
}

// dead returns the blockers that no client treats as held any more.
func (v *readWriteView) dead(now time.Duration) []blocker {
	return slices.DeleteFunc(slices.Clone(v.all), func(b blocker) bool { return b.dead > now })
}

// nextSide is next for a read/write lock.
func (w *waiter) nextSide(over bool) (attempt, *protocol.Write) {
	a := w.c.newAttempt(w.want.timing.Lease)
	g := w.c.grantOf(w.want, a)
	g.Create = w.rw.absent && !w.want.ifExists
	g.Takeable, g.Intents = w.tried.Versions(), attempts.Versions(w.rw.intents)
	if over {
		dead := w.rw.dead(a.sent.Mono)
		if w.rw.by.Any {
			dead = dead[:min(len(dead), 1)] // a condition that names them all would be too long
		}
		for _, b := range dead {
			g.Dead = append(g.Dead, b.protocol())
			if held := b.mode == protocol.ModeRead || b.mode == protocol.ModeWrite; held && !b.ours && a.dead == nil {
				a.dead = &b.Record
			}
		}
	}
	for _, r := range w.rw.spent {
		if !slices.ContainsFunc(g.Dead, func(dead protocol.Record) bool { return dead.Grant == r.Grant }) {
			g.Dead = append(g.Dead, r.protocol())
		}
	}
	return a, w.want.side.Grant(g)
}

// showsSide returns the attempt whose entry a row shows, if at least half of its
// trust is left. Of a writer's attempts only the last counts: later ones name an
// earlier one in their conditions, and may still be applied.
func (w *waiter) showsSide(item protocol.Item, sent []attempt) (attempt, bool) {
	if w.want.mode == protocol.ModeWrite {
		sent = sent[len(sent)-1:]
	}
	for _, a := range sent {
		r, err := w.decode(a.version, item)
		if err == nil && !r.Released && r.Grant == a.version && a.isWorthHaving(w.want.timing, w.c.now()) {
			return a, true
		}
	}
	return attempt{}, false
}

// noteSpent records own attempts to read that were applied with too little trust left.
func (w *waiter) noteSpent(r attempts.Result[attempt]) {
	w.rw.spent = nil
	if r.Item == nil || w.want.mode != protocol.ModeRead {
		return
	}
	for _, a := range append(w.tried.Unanswered(), r.Attempt) {
		if entry, err := w.decode(a.version, r.Item); err == nil && !entry.Released && entry.Grant == a.version {
			w.rw.spent = append(w.rw.spent, entry)
		}
	}
}

// untilIntent is the time until the intent must be posted or renewed.
func (w *waiter) untilIntent() time.Duration {
	if w.nextIntent(attempt{}) == nil {
		return math.MaxInt64
	}
	return max(w.rw.due-w.c.now().Mono, 0)
}

// nextIntent returns the write that posts or renews the intent; nil if none is needed.
func (w *waiter) nextIntent(a attempt) *protocol.Write {
	if w.want.side == nil || w.want.noWait || len(w.rw.all) == 0 {
		return nil
	}
	g := w.c.grantOf(w.want, a)
	g.Intents = attempts.Versions(w.rw.intents)
	for _, b := range w.rw.dead(w.c.now().Mono) {
		if b.mode == protocol.ModeIntent {
			g.Dead = append(g.Dead, b.protocol())
		}
	}
	return w.want.side.Intend(w.rw.by, g)
}

// postIntent posts or renews the intent if it is due.
func (w *waiter) postIntent() error {
	if w.untilIntent() > 0 {
		return nil
	}
	w.requests++
	var tried attempts.Sequence[attempt] // all that it names are in rw.intents
	r := tried.Try(context.WithoutCancel(w.ctx), w.c.requests, attempts.Operation[attempt]{
		Key: protocol.Key(w.want.key),
		Next: func() (attempt, *protocol.Write) {
			a := w.c.newAttempt(w.want.timing.Lease)
			return a, w.nextIntent(a)
		},
		Within: min(attempts.Limit, w.want.timing.Every),
		Shows:  w.showsIntent,
	})
	w.rw.due = w.c.now().Mono + w.c.cfg.PollMax
	switch r.Outcome {
	case attempts.Applied:
		w.addIntent(r.Attempt)
		w.rw.due = r.Attempt.sent.Mono + w.want.timing.Every
		return w.observe(r.Item)
	case attempts.Rejected:
		return w.observe(r.Item)
	case attempts.Unanswered:
		w.addIntent(r.Attempt)
	}
	return r.Failure()
}

// showsIntent returns the attempt whose intent a row shows: one delivered twice.
func (w *waiter) showsIntent(item protocol.Item, sent []attempt) (attempt, bool) {
	if item == nil {
		return attempt{}, false
	}
	by, err := w.want.side.Blockers(item, time.Now())
	if err != nil {
		return attempt{}, false
	}
	for _, b := range by.By {
		if a, ours := attempts.Find(sent, b.Version); ours && b.Mode == protocol.ModeIntent {
			return a, true
		}
	}
	return attempt{}, false
}

// addIntent remembers an intent that was posted, or may have been. The first one's
// version names the intent, so that one is kept.
func (w *waiter) addIntent(a attempt) {
	if w.want.intended == nil {
		w.want.intended = &a.sent
	}
	w.rw.intents = append(w.rw.intents, a)
	if extra := len(w.rw.intents) - attempts.MostUnanswered; extra > 0 {
		w.c.unsettled.Add(w.want.key, attempts.Versions(w.rw.intents[1:1+extra]), w.c.now().Mono)
		w.rw.intents = slices.Delete(w.rw.intents, 1, 1+extra)
	}
}

// removeIntent removes the intent of a waiter that gives up. It tries once: an
// intent that stays is dead after its lease.
func (w *waiter) removeIntent(ctx context.Context) {
	if len(w.rw.intents) == 0 {
		return
	}
	hold := protocol.Hold{Key: protocol.Key(w.want.key), Owner: w.c.owner, Grants: attempts.Versions(w.rw.intents)}
	w.c.write(ctx, w.want.side.Withdraw(hold))
}

// decodeAll reads the records in an item: a read/write lock has one for each holder.
func (c *Client) decodeAll(key Key, item protocol.Item) ([]Record, error) {
	rw, ok := c.proto.(protocol.ReadWriting)
	if !ok || !protocol.IsReadWrite(item) {
		r, err := c.decode(key, item)
		return []Record{r}, err
	}
	entries, err := rw.Entries(item)
	if err != nil {
		return []Record{{Key: key}}, c.recordError(key, item, err)
	}
	records := make([]Record, len(entries))
	for i, e := range entries {
		records[i] = recordOf(e)
	}
	return records, nil
}

// protoOfRecord returns the protocol by which a record is written and read.
func (c *Client) protoOfRecord(r Record) protocol.Protocol {
	if rw, ok := c.proto.(protocol.ReadWriting); ok && r.mode != protocol.ModePlain {
		return rw.ReadWrite(r.mode, false).Of(r.Grant)
	}
	return c.proto
}
