package seek

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/observed"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// sideRecord is one side of a read/write lock's record: all who read, or who writes.
type sideRecord struct {
	*waiter
	side     protocol.Side
	absent   bool // there was no record
	by       protocol.Blockers
	all      []blocker                        // those of by that are not its own intents
	spent    []protocol.Record                // own attempts that were applied, but with too little trust left
	intended []Attempt                        // intents posted, or unanswered; oldest first
	intendAt time.Duration                    // monotonic: when the intent is posted or renewed
	entries  observed.Watcher[liveness.Entry] // of all
}

func newSideRecord(w *waiter) *sideRecord {
	t := &sideRecord{waiter: w, side: w.want.Side, intendAt: w.c.Now().Mono}
	t.entries.Of = w.c.Observer.Entries
	return t
}

func (t *sideRecord) watch()                  {} // entries watches what observe meets
func (t *sideRecord) unwatch()                { t.entries.Only() }
func (t *sideRecord) prepare(bool) error      { return nil } // each is renewed by itself, without a session
func (t *sideRecord) intents() []Attempt      { return t.intended }
func (t *sideRecord) handed() (Attempt, bool) { return Attempt{}, false }
func (t *sideRecord) holds(string)            {}

// blocker is a holder, or a writer's intent, that a grant must wait for.
type blocker struct {
	protocol.Record
	dead time.Duration // monotonic: when it is dead, if it is not renewed
	ours bool          // an unsettled attempt of this client, which no client treats as held
}

func (t *sideRecord) observe(item protocol.Item) error {
	wall, now := t.c.Wall(), t.c.Now()
	t.view.Known, t.view.Free, t.view.Ours = true, true, false
	t.absent, t.all = item == nil, nil
	t.by = protocol.Blockers{}
	before := t.seen
	t.seen = nil
	if item == nil {
		return nil
	}
	by, err := t.side.Blockers(item, wall)
	if err != nil {
		return t.c.Observer.Damaged(t.want.Key, item, err)
	}
	t.by = by
	t.others.Store(0)
	if by.Any {
		t.others.Store(int32(len(by.By) - 1))
	}
	t.view.Grant = math.MaxInt64
	var watched []liveness.Entry
	for _, r := range by.By {
		if slices.Contains(attempts.Versions(t.intended), r.Version) {
			continue
		}
		b := blocker{Record: r, dead: math.MinInt64}
		if b.ours = t.isOurs(b.Version); !b.ours {
			v := t.c.Observer.ObserveEntry(r, now)
			watched = append(watched, liveness.EntryOf(r))
			b.dead = t.c.Observer.DeadAt(r, v, now, wall)
			t.view.Grant = min(t.view.Grant, v.Granted)
		}
		t.all = append(t.all, b)
	}
	t.entries.Only(watched...)
	if len(t.all) == 0 {
		return nil
	}
	t.view.Free = false
	decisive := t.decisive(t.all)
	t.view.Dead, t.view.Ours = decisive.dead, decisive.ours
	seen := t.all[0].Record
	if seen.Mode == protocol.ModeReadersFirst && len(t.all) > 1 {
		seen = t.all[1].Record // somebody that an error can name
	}
	t.seen = &seen
	t.silence()
	t.holder.Store(&seen)
	if !t.view.Ours && liveness.IsNewGrant(before, seen) {
		t.c.Listener.Waiting(t.ctx, t.want.Key, &seen, 0, nil)
	}
	return nil
}

// silence notes whether those who must go for a grant look dead.
func (t *sideRecord) silence() {
	if t.met == nil {
		for _, b := range t.all {
			t.met = append(t.met, b.Version)
		}
	}
	lives := func(b blocker) bool { return !b.ours && (!t.looksDead(b.Record) || t.isOwnLock(b.Record)) }
	if t.by.Any {
		t.noteSilent(slices.ContainsFunc(t.all, func(b blocker) bool { return !lives(b) }))
	} else {
		t.noteSilent(!slices.ContainsFunc(t.all, lives))
	}
}

// decisive returns who of all must go for a grant: the last to be dead or, where one is
// enough, the first.
func (t *sideRecord) decisive(all []blocker) blocker {
	byDeath := func(a, b blocker) int { return cmp.Compare(a.dead, b.dead) }
	if t.by.Any {
		return slices.MinFunc(all, byDeath)
	}
	return slices.MaxFunc(all, byDeath)
}

// allDead returns the blockers that no client treats as held any more.
func (t *sideRecord) allDead(now time.Duration) []blocker {
	return slices.DeleteFunc(slices.Clone(t.all), func(b blocker) bool { return b.dead > now || t.isOwnLock(b.Record) })
}

func (t *sideRecord) dead() time.Duration {
	all := slices.Clone(t.all)
	for i, b := range all {
		if t.isOwnLock(b.Record) {
			all[i].dead = math.MaxInt64
		}
	}
	return t.decisive(all).dead
}

func (t *sideRecord) grant(takeOver bool) (Attempt, *protocol.Write) {
	a := t.c.Attempt(t.want.Timing.Lease, nil)
	g := t.c.Grant(t.want, a)
	g.Create = t.absent && !t.want.IfExists
	g.Takeable, g.Intents = t.tried.Versions(), attempts.Versions(t.intended)
	if takeOver {
		dead := t.allDead(a.Sent.Mono)
		if t.by.Any {
			dead = dead[:min(len(dead), 1)] // a condition that names them all would be too long
		}
		for _, b := range dead {
			g.Dead = append(g.Dead, b.Record)
			if held := b.Mode == protocol.ModeRead || b.Mode == protocol.ModeWrite; held && !b.ours && a.Dead == nil {
				a.Dead = &b.Record
			}
		}
	}
	for _, r := range t.spent {
		if !slices.ContainsFunc(g.Dead, func(dead protocol.Record) bool { return dead.Grant == r.Grant }) {
			g.Dead = append(g.Dead, r)
		}
	}
	return a, t.side.Grant(g)
}

// shows returns the attempt whose entry a row shows, if at least half of its
// trust is left. Of a writer's attempts only the last counts: later ones name an
// earlier one in their conditions, and may still be applied.
func (t *sideRecord) shows(item protocol.Item, sent []Attempt) (Attempt, bool) {
	if t.want.Mode == protocol.ModeWrite {
		sent = sent[len(sent)-1:]
	}
	for _, a := range sent {
		r, err := t.decode(a.Version, item)
		if err == nil && !r.Released && r.Grant == a.Version && a.isWorthHaving(t.want.Timing, t.c.Now()) {
			return a, true
		}
	}
	return Attempt{}, false
}

// rejected records own attempts that were applied with too little trust left.
func (t *sideRecord) rejected(r attempts.Result[Attempt]) {
	t.spent = nil
	if r.Item == nil {
		return
	}
	for _, a := range append(t.tried.Unanswered(), r.Attempt) {
		if entry, err := t.decode(a.Version, r.Item); err == nil && !entry.Released && entry.Grant == a.Version {
			t.spent = append(t.spent, entry)
		}
	}
	if t.want.Mode == protocol.ModeWrite && len(t.spent) > 0 { // a writer is alone in its row
		t.view.Ours = true
	}
}

// due is the time until the intent must be posted or renewed.
func (t *sideRecord) due() time.Duration {
	if t.nextIntent(Attempt{}) == nil {
		return math.MaxInt64
	}
	return max(t.intendAt-t.c.Now().Mono, 0)
}

// nextIntent returns the write that posts or renews the intent; nil if none is needed.
func (t *sideRecord) nextIntent(a Attempt) *protocol.Write {
	if t.want.NoWait || len(t.all) == 0 {
		return nil
	}
	g := t.c.Grant(t.want, a)
	g.Intents = attempts.Versions(t.intended)
	for _, b := range t.allDead(t.c.Now().Mono) {
		if b.Mode == protocol.ModeIntent {
			g.Dead = append(g.Dead, b.Record)
		}
	}
	return t.side.Intend(t.by, g)
}

// refresh posts or renews the intent if it is due.
func (t *sideRecord) refresh() error {
	if t.due() > 0 {
		return nil
	}
	t.requests++
	var tried attempts.Sequence[Attempt] // all that it names are in intended
	r := tried.Try(t.values, t.c.Requests, attempts.Operation[Attempt]{
		Key: t.want.Key,
		Next: func() (Attempt, *protocol.Write) {
			a := t.c.Attempt(t.want.Timing.Lease, nil)
			return a, t.nextIntent(a)
		},
		Within: min(attempts.Limit, t.want.Timing.Every),
		Shows:  t.showsIntent,
	})
	t.intendAt = decide.Sum(t.c.Now().Mono, t.c.PollMax)
	switch r.Outcome {
	case attempts.Applied:
		t.addIntent(r.Attempt)
		t.intendAt = decide.Sum(r.Attempt.Sent.Mono, t.want.Timing.Every)
		return t.waiter.observe(r.Item)
	case attempts.Rejected:
		return t.waiter.observe(r.Item)
	case attempts.Unanswered:
		t.addIntent(r.Attempt)
	}
	return r.Failure()
}

// showsIntent returns the attempt whose intent a row shows: one delivered twice.
func (t *sideRecord) showsIntent(item protocol.Item, sent []Attempt) (Attempt, bool) {
	if item == nil {
		return Attempt{}, false
	}
	by, err := t.side.Blockers(item, t.c.Wall())
	if err != nil {
		return Attempt{}, false
	}
	for _, b := range by.By {
		if a, ours := attempts.Find(sent, b.Version); ours && b.Mode == protocol.ModeIntent {
			return a, true
		}
	}
	return Attempt{}, false
}

// addIntent remembers an intent that was posted, or may have been. The first one's
// version names the intent, so that one is kept.
func (t *sideRecord) addIntent(a Attempt) {
	if t.want.Intended == nil {
		t.want.Intended = &a.Sent
	}
	t.intended = append(t.intended, a)
	if extra := len(t.intended) - attempts.MostUnanswered; extra > 0 {
		t.c.Unsettled.Add(t.want.Key, attempts.Versions(t.intended[1:1+extra]), t.c.Now().Mono)
		t.intended = slices.Delete(t.intended, 1, 1+extra)
	}
}

// giveUp removes the intent. It tries once: an intent that stays is dead after its
// lease.
func (t *sideRecord) giveUp() {
	if len(t.intended) == 0 {
		return
	}
	hold := protocol.Hold{Key: t.want.Key, Owner: t.c.Owner, Grants: attempts.Versions(t.intended)}
	t.c.write(t.values, t.side.Withdraw(hold))
}
