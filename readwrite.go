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

// checkAlone refuses what only a lock with one holder can do.
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

// mayShare reports whether the grant of h serves a request as well.
func (r *request) mayShare(h *holding) bool {
	return h.want.mode == r.mode || h.want.mode == protocol.ModeWrite && r.mode == protocol.ModeRead
}

// protoOf spells the writes on what a request was granted, and reads it.
func (r *request) protoOf(c *Client, grant string) protocol.Protocol {
	if r.side == nil {
		return c.proto
	}
	return r.side.Of(grant)
}

// readersFirst is for how long other writers let readers go first after this
// one: for the longest pause of a reader who watched it, or its intent, and what
// it takes to look and to be granted.
func (h *holding) readersFirst() time.Duration {
	since := h.granted.Mono
	if h.want.intended != nil {
		since = h.want.intended.Mono
	}
	return decide.Pause(h.c.now().Mono-since, h.c.cfg.PollMin, h.c.cfg.PollMax, 1) + 2*h.c.cfg.PollMin
}

// crowd is what a waiter knows of a key that several may hold.
type crowd struct {
	absent  bool // there was no record
	by      protocol.Blockers
	all     []blocker                  // those of by that are not its own intents
	spent   []Record                   // own attempts that have landed, to read, and are not worth having
	intents []attempt                  // posted, or without an answer; oldest first
	due     time.Duration              // monotonic: when the intent is posted or renewed
	entries observed.Watcher[entryKey] // of all
}

// blocker is one of those who keep a grant from being made.
type blocker struct {
	Record
	dead time.Duration // monotonic: when it is dead, if it stays as it is
	ours bool          // an unsettled attempt of this client, which nobody holds
}

// seeSide is see for a key that several may hold.
func (w *waiter) seeSide(item protocol.Item) error {
	now := w.c.now()
	w.view.Known, w.view.Free, w.view.Ours = true, true, false
	w.crowd.absent, w.crowd.all = item == nil, nil
	w.crowd.by = protocol.Blockers{}
	before := w.seen
	w.seen = nil
	if item == nil {
		return nil
	}
	by, err := w.want.side.Blockers(item, time.Now())
	if err != nil {
		return w.c.recordError(w.want.key, item, err)
	}
	w.crowd.by = by
	w.others.Store(0)
	if by.Any {
		w.others.Store(int32(len(by.By) - 1))
	}
	w.view.Grant = math.MaxInt64
	var watched []entryKey
	for _, r := range by.By {
		if slices.Contains(attempts.Versions(w.crowd.intents), r.Version) {
			continue
		}
		b := blocker{Record: recordOf(r), dead: math.MinInt64}
		if b.ours = w.c.isUnsettled(w.want.key, b.Version) || slices.Contains(w.tried.Versions(), b.Version); !b.ours {
			v := w.c.observeEntry(b.Record, now)
			watched = append(watched, entryKeyOf(b.Record))
			b.dead = decide.DeadByVersion(v.Since.Mono, b.Lease)
			w.view.Grant = min(w.view.Grant, v.Granted)
		}
		w.crowd.all = append(w.crowd.all, b)
	}
	w.crowd.entries.Only(watched...)
	last, first := w.crowd.lastToGo()
	if last == nil {
		return nil
	}
	w.view.Free = false
	decisive := last
	if by.Any {
		decisive = first
	}
	w.view.Dead, w.view.Ours = decisive.dead, decisive.ours
	seen := w.crowd.all[0].Record
	if seen.mode == protocol.ModeReadersFirst && len(w.crowd.all) > 1 {
		seen = w.crowd.all[1].Record // somebody to be named
	}
	w.seen = &seen
	w.holder.Store(&seen)
	if changed := before == nil || grantIDOf(*before) != grantIDOf(seen); changed && !w.view.Ours {
		w.c.emit(w.ctx, Event{Kind: EventWaiting, Key: w.want.key, Holder: &seen})
	}
	return nil
}

// lastToGo returns who will be dead last, and who first.
func (w *crowd) lastToGo() (last, first *blocker) {
	for i := range w.all {
		b := &w.all[i]
		if last == nil || b.dead > last.dead {
			last = b
		}
		if first == nil || b.dead < first.dead {
			first = b
		}
	}
	return last, first
}

// gone returns those who are dead at now, or nobody believes in.
func (w *crowd) gone(now time.Duration) []blocker {
	return slices.DeleteFunc(slices.Clone(w.all), func(b blocker) bool { return b.dead > now })
}

// nextSide is next for a key that several may hold.
func (w *waiter) nextSide(over bool) (attempt, *protocol.Write) {
	a := w.c.newAttempt(w.want.timing.Lease)
	g := w.c.grantOf(w.want, a)
	g.Create = w.crowd.absent && !w.want.ifExists
	g.Takeable, g.Intents = w.tried.Versions(), attempts.Versions(w.crowd.intents)
	if over {
		gone := w.crowd.gone(a.sent.Mono)
		if w.crowd.by.Any {
			gone = gone[:min(len(gone), 1)] // a condition that names them all would be too long
		}
		for _, b := range gone {
			g.Dead = append(g.Dead, b.protocol())
			if held := b.mode == protocol.ModeRead || b.mode == protocol.ModeWrite; held && !b.ours && a.dead == nil {
				a.dead = &b.Record
			}
		}
	}
	for _, r := range w.crowd.spent {
		if !slices.ContainsFunc(g.Dead, func(dead protocol.Record) bool { return dead.Grant == r.Grant }) {
			g.Dead = append(g.Dead, r.protocol())
		}
	}
	return a, w.want.side.Grant(g)
}

// showsSide returns the attempt whose entry a row shows, if it is worth having:
// while half its trust is left. Of those to write only the last may be: one before
// it is named by later ones, which may be applied yet.
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

// spend enters the entries of own attempts to read that are not worth having.
func (w *waiter) spend(r attempts.Result[attempt]) {
	w.crowd.spent = nil
	if r.Item == nil || w.want.mode != protocol.ModeRead {
		return
	}
	for _, a := range append(w.tried.Unanswered(), r.Attempt) {
		if entry, err := w.decode(a.version, r.Item); err == nil && !entry.Released && entry.Grant == a.version {
			w.crowd.spent = append(w.crowd.spent, entry)
		}
	}
}

// untilIntent is how long it is until the intent is to be posted or renewed.
func (w *waiter) untilIntent() time.Duration {
	if w.intention(attempt{}) == nil {
		return math.MaxInt64
	}
	return max(w.crowd.due-w.c.now().Mono, 0)
}

// intention spells the intent to be granted; nil: none is called for.
func (w *waiter) intention(a attempt) *protocol.Write {
	if w.want.side == nil || w.want.noWait || len(w.crowd.all) == 0 {
		return nil
	}
	g := w.c.grantOf(w.want, a)
	g.Intents = attempts.Versions(w.crowd.intents)
	for _, b := range w.crowd.gone(w.c.now().Mono) {
		if b.mode == protocol.ModeIntent {
			g.Dead = append(g.Dead, b.protocol())
		}
	}
	return w.want.side.Intend(w.crowd.by, g)
}

// intend posts or renews the intent if it is due.
func (w *waiter) intend() error {
	if w.untilIntent() > 0 {
		return nil
	}
	w.requests++
	var tried attempts.Sequence[attempt] // all that it names are in crowd.intents
	r := tried.Try(context.WithoutCancel(w.ctx), w.c.requests, attempts.Operation[attempt]{
		Key: protocol.Key(w.want.key),
		Next: func() (attempt, *protocol.Write) {
			a := w.c.newAttempt(w.want.timing.Lease)
			return a, w.intention(a)
		},
		Within: min(attempts.Limit, w.want.timing.Every),
	})
	w.crowd.due = w.c.now().Mono + w.c.cfg.PollMax
	switch r.Outcome {
	case attempts.Applied:
		w.intended(r.Attempt)
		w.crowd.due = r.Attempt.sent.Mono + w.want.timing.Every
		return w.see(r.Item)
	case attempts.Rejected:
		return w.see(r.Item)
	case attempts.Unanswered:
		w.intended(r.Attempt)
	}
	return r.Failure()
}

// intended remembers an intent that is there, or may come to be. The first has
// given its name to all.
func (w *waiter) intended(a attempt) {
	if w.want.intended == nil {
		w.want.intended = &a.sent
	}
	w.crowd.intents = append(w.crowd.intents, a)
	if extra := len(w.crowd.intents) - attempts.MostUnanswered; extra > 0 {
		w.c.unsettled.Add(w.want.key, attempts.Versions(w.crowd.intents[1:1+extra]), w.c.now().Mono)
		w.crowd.intents = slices.Delete(w.crowd.intents, 1, 1+extra)
	}
}

// withdraw removes the intent of a waiter that gives up. It is tried once: one
// that stays is dead after its lease.
func (w *waiter) withdraw(ctx context.Context) {
	if len(w.crowd.intents) == 0 {
		return
	}
	hold := protocol.Hold{Key: protocol.Key(w.want.key), Owner: w.c.owner, Grants: attempts.Versions(w.crowd.intents)}
	w.c.write(ctx, w.want.side.Withdraw(hold))
}

// decodeAll reads an item as the records that it holds: of a read/write lock
// one for each holder.
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

// protoOfRecord spells the writes on a record that was read, and reads it again.
func (c *Client) protoOfRecord(r Record) protocol.Protocol {
	if rw, ok := c.proto.(protocol.ReadWriting); ok && r.mode != protocol.ModePlain {
		return rw.ReadWrite(r.mode, false).Of(r.Grant)
	}
	return c.proto
}
