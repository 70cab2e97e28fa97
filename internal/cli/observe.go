package cli

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/layout"
)

// observation is the result of observing a held record for its lease. If the
// record is no longer held, liveness is "" and record is the new one.
type observation struct {
	record    leasehold.Record
	liveness  liveness
	heartbeat heartbeat // shows the liveness
	gone      bool      // the record was deleted
	err       error     // of this record, or what ended the observation
}

// observer finds out whether holders are live or dead.
type observer struct {
	locks  *leasehold.Client
	reader rereader
	expiry layout.Expiry
	late   time.Duration // WallClock layouts: how long after its expiry a record's holder is dead
	seen   *memory       // of earlier commands; nil: none
	limit  time.Duration // how long it observes; 0: until every holder is known
}

// newObserver returns an observer that judges records as a waiter would.
func newObserver(s *store, locks *leasehold.Client) (observer, error) {
	proto, err := records.Of(s.layout)
	if err != nil {
		return observer{}, err
	}
	caps := locks.Capabilities()
	return observer{
		seen: s.seen, locks: locks, reader: rereader{db: s.db, table: s.table, proto: proto, paid: s.file == ""},
		expiry: caps.Expiry, late: proto.Skew() + caps.LeaseStep,
	}, nil
}

// deadIn returns how long a record must still stay unchanged until its holder is
// dead, if it was first seen seenFor ago. The holder is dead after one lease by
// this process's monotonic clock; in layouts that store an expiry time, once that
// time has passed on every clock of the fleet.
func (o observer) deadIn(lease time.Duration, expiresAt time.Time, seenFor time.Duration) time.Duration {
	if o.expiry == layout.WallClock {
		return time.Until(expiresAt.Add(o.late))
	}
	return lease - seenFor
}

// observe reads the records again and again, all in one go, until of each the
// version has changed or the holder is dead.
func (o observer) observe(ctx context.Context, records []leasehold.Record) []observation {
	out := make([]observation, len(records))
	o.watch(ctx, records, func(plan) {}, func(i int, found observation) { out[i] = found })
	return out
}

// watch is observe that tells of each record when it is settled. Before it begins to
// wait it tells what is left to do. Once o.limit is over the holders that are left
// are unknown; if the observation cannot go on they are, and have its error.
func (o observer) watch(ctx context.Context, records []leasehold.Record, planned func(plan), settled func(i int, found observation)) {
	w := watch{observer: o, began: time.Now()}
	for i, r := range records {
		if r.Released {
			settled(i, observation{record: r})
			continue
		}
		w.open = append(w.open, &subject{index: i, first: r, record: r, seen: unseen})
	}
	if o.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.limit, errObservedEnough)
		defer cancel()
	}
	told := false
	for len(w.open) > 0 {
		at, due := w.next(w.open)
		if !sleep(ctx, at-time.Since(w.began)) {
			w.end(context.Cause(ctx), settled)
			return
		}
		switch err := w.read(ctx, due, settled); {
		case ctx.Err() != nil:
			w.end(context.Cause(ctx), settled)
			return
		case err != nil && !w.mayPass(err):
			w.end(err, settled)
			return
		case err != nil:
			w.later(due)
		default:
			w.failed = nil
			if !told && len(w.open) > 0 {
				told = true
				planned(w.plan())
			}
		}
	}
}

// errObservedEnough ends an observation that has taken its time.
var errObservedEnough = errors.New("observed for long enough")

// watch is an observation under way. Its times are since it began.
type watch struct {
	observer
	began time.Time
	open  []*subject // not settled yet, in the order of the records

	failed error         // of the last reading
	since  time.Duration // when the first of those in a row that failed was over
}

// mayPass notes that a reading failed, and reports whether the next may succeed.
func (w *watch) mayPass(err error) bool {
	now := time.Since(w.began)
	if w.failed == nil {
		w.since = now
	}
	w.failed = err
	return decide.Classify(err).Cause.After(true) != decide.Refused && now-w.since < givenUpAfter
}

// subject is a holder that is observed.
type subject struct {
	index   int
	first   leasehold.Record // as it was listed
	record  leasehold.Record // as it was read last
	session string           // the session that is renewed in the record's place; "": none
	beat    heartbeat        // when it was read first
	seen    time.Duration    // when that was; unseen: not yet
	dead    time.Duration    // when the holder is dead
	every   time.Duration    // the pause between two readings
	due     time.Duration    // the next reading
	settled bool
}

const (
	unseen          = time.Duration(-1)
	minReadInterval = 10 * time.Millisecond // for any lease
	maxReadInterval = 10 * time.Second
	retryReading    = time.Second // after one that failed
	givenUpAfter    = 10 * time.Second
)

// readingsApart returns the pause between two readings of a record whose holder will
// be dead in left. Holders renew about four times a lease. Three tenths of it are a
// little more than their pause, so that nearly all that live are settled by the first
// reading, and dead ones cost three more.
func readingsApart(left time.Duration) time.Duration {
	return min(max(left*3/10, minReadInterval), maxReadInterval)
}

// next returns when the next reading is due, and of which subjects. It waits a little
// for others that are due soon after the first.
func (w *watch) next(open []*subject) (at time.Duration, due []*subject) {
	first, last := open[0].due, open[0].due+open[0].every/8
	for _, s := range open {
		first, last = min(first, s.due), min(last, s.due+s.every/8)
	}
	for _, s := range open {
		if s.due <= last {
			at, due = max(at, s.due), append(due, s)
		}
	}
	if keys, sessions := w.keys(due); w.reader.lists(keys + sessions) {
		due = open // they are read anyway
	}
	return at, due
}

// keys returns how many rows show the subjects: their records, and sessions.
func (w *watch) keys(of []*subject) (keys, sessions int) {
	records, ids := map[leasehold.Key]bool{}, map[string]bool{}
	for _, s := range of {
		records[s.record.Key] = true // a read/write lock may have several holders
		if s.session != "" {
			ids[s.session] = true
		}
	}
	return len(records), len(ids)
}

// read reads the subjects once, and settles those that can be.
func (w *watch) read(ctx context.Context, subjects []*subject, settled func(int, observation)) error {
	sharing, _ := w.reader.proto.(protocol.Sharing)
	asked := time.Since(w.began)
	items, err := w.rows(ctx, sharing, subjects)
	if err != nil {
		return err
	}
	answered := time.Since(w.began)
	for _, s := range subjects {
		found, done := w.judge(s, sharing, items, asked, answered)
		if s.settled = done; !done {
			continue
		}
		if found.liveness == dead {
			w.note(s)
		}
		if found.err == nil && !found.gone && grantOf(found.record) != grantOf(s.first) {
			// Not all that a record of another grant shows is ours to copy.
			r, err := holder(ctx, w.locks, s.first.Key, func(r leasehold.Record) bool { return grantOf(r) == grantOf(found.record) })
			if err == nil {
				found.record = r
			}
		}
		settled(s.index, found)
	}
	var open []*subject // not in place: subjects may be the same slice
	for _, s := range w.open {
		if !s.settled {
			open = append(open, s)
		}
	}
	w.open = open
	return nil
}

// note keeps what was seen of a holder that has not renewed, for the next command.
func (w *watch) note(s *subject) {
	if s.seen == unseen || w.expiry != layout.Observed || s.beat.version == noSessionRow {
		return
	}
	key := protocol.Key(s.record.Key)
	if sharing, ok := w.reader.proto.(protocol.Sharing); ok && s.session != "" {
		key = sharing.SessionKey(s.session)
	}
	w.seen.note(key, s.beat.version, s.beat.lease, time.Since(w.began)-s.seen)
}

// rows reads the records of subjects and the rows of their sessions, which a first
// reading has to learn from the records.
func (w *watch) rows(ctx context.Context, sharing protocol.Sharing, subjects []*subject) (map[protocol.Key]protocol.Item, error) {
	asked := map[protocol.Key]bool{}
	var keys []protocol.Key
	add := func(k protocol.Key) {
		if !asked[k] {
			asked[k], keys = true, append(keys, k)
		}
	}
	for _, s := range subjects {
		add(protocol.Key(s.record.Key))
		if s.session != "" {
			add(sharing.SessionKey(s.session))
		}
	}
	items, err := w.reader.read(ctx, keys)
	if err != nil || sharing == nil {
		return items, err
	}
	keys = nil
	for _, s := range subjects {
		if r, err := w.decode(items[protocol.Key(s.record.Key)], s.record); err == nil && r.Session != "" {
			add(sharing.SessionKey(r.Session))
		}
	}
	more, err := w.reader.byKey(ctx, keys)
	for k, item := range more {
		items[k] = item
	}
	return items, err
}

// judge says what a reading shows of a holder, and whether that settles it.
func (w *watch) judge(s *subject, sharing protocol.Sharing, items map[protocol.Key]protocol.Item, asked, answered time.Duration) (observation, bool) {
	item := items[protocol.Key(s.record.Key)]
	if item == nil {
		return observation{record: s.record, gone: true}, true
	}
	r, err := w.decode(item, s.record)
	var bad *protocol.DecodeError
	if errors.As(err, &bad) {
		err = &leasehold.RecordError{Key: s.record.Key, Table: w.reader.table, Attribute: bad.Attribute, Problem: bad.Problem, Item: item}
	}
	if err != nil {
		return observation{record: s.record, err: err}, true
	}
	s.record, s.session = updated(s.first, r), r.Session
	if r.Released {
		return observation{record: s.record}, true
	}
	beat := heartbeat{version: r.Version, lease: r.Lease}
	if sharing != nil && r.Session != "" {
		if beat, err = sessionHeartbeat(sharing, items[sharing.SessionKey(r.Session)]); err != nil {
			return observation{record: s.record, err: err}, true
		}
	}
	found := observation{record: s.record, heartbeat: beat}
	switch {
	case beat.dead:
		found.liveness = dead
		return found, true
	case s.seen == unseen:
		// The listed record may be old, so the lease counts from this reading.
		s.beat, s.seen = beat, answered
		if age := w.seen.age(beat.version); age > 0 && w.expiry == layout.Observed {
			s.seen = min(answered-age, unseen-1)
		}
	case beat.version != s.beat.version:
		found.liveness = live
		return found, true
	}
	// Not by when the reply came: the holder may have renewed while it was under way.
	left := w.deadIn(beat.lease, r.ExpiresAt, asked-s.seen)
	if left <= 0 {
		found.liveness = dead
		return found, true
	}
	s.dead = asked + left
	if s.every == 0 {
		s.every = readingsApart(left)
	}
	s.due = min(answered+s.every, max(s.dead, answered))
	return observation{}, false
}

// decode reads the record of a holder in an item, in which a read/write lock has
// several: the one of the same grant as before or, if there is none, the first.
func (w *watch) decode(item protocol.Item, before leasehold.Record) (protocol.Record, error) {
	records, err := protocol.Records(w.reader.proto, item)
	if err != nil {
		return protocol.Record{}, err
	}
	for _, r := range records {
		if grantOf(updated(before, r)) == grantOf(before) {
			return r, nil
		}
	}
	return records[0], nil
}

// stillDead returns a *ChangedError if a holder that was found dead has renewed its
// session since. Its record does not show that.
func (o observer) stillDead(ctx context.Context, found observation) error {
	sharing, ok := o.reader.proto.(protocol.Sharing)
	if !ok || !found.heartbeat.shared || found.heartbeat.dead {
		return nil
	}
	key := sharing.SessionKey(protocol.ClientID(found.record.Owner))
	items, err := o.reader.byKey(ctx, []protocol.Key{key})
	if err != nil {
		return err
	}
	now, err := sessionHeartbeat(sharing, items[key])
	if err == nil && now.version != found.heartbeat.version {
		err = &leasehold.ChangedError{Now: found.record}
	}
	return err
}

// updated returns the record of a grant as it is now.
func updated(r leasehold.Record, now protocol.Record) leasehold.Record {
	r.Owner, r.Token, r.Grant, r.Version, r.Lease = now.Owner, now.Token, now.Grant, now.Version, now.Lease
	r.GrantedAt, r.Released, r.ExpiresAt, r.Data, r.Attributes = now.GrantedAt, now.Released, now.ExpiresAt, now.Data, now.Attributes
	r.Broken = (*leasehold.Broken)(now.Broken)
	return r
}

// later puts a reading off that failed.
func (w *watch) later(due []*subject) {
	for _, s := range due {
		s.due = time.Since(w.began) + retryReading
	}
}

// end settles what is left as unknown.
func (w *watch) end(why error, settled func(int, observation)) {
	if errors.Is(why, errObservedEnough) {
		why = w.failed
	}
	for _, s := range w.open {
		w.note(s)
		settled(s.index, observation{record: s.record, liveness: unknown, err: why})
	}
	w.open = nil
}

// plan says what is left of an observation: for how many holders, for how long, and
// at which cost if none of them is live.
type plan struct {
	holders  int
	longest  time.Duration
	requests int
	units    float64
}

// plan goes through the readings that are left as if nobody renewed.
func (w *watch) plan() plan {
	began := time.Since(w.began)
	p := plan{holders: len(w.open)}
	open := make([]*subject, len(w.open))
	for i, s := range w.open {
		left := *s
		open[i] = &left
	}
	for len(open) > 0 {
		at, due := w.next(open)
		if w.limit > 0 && at > w.limit {
			p.longest = w.limit - began
			break
		}
		requests, units := w.reader.cost(w.keys(due))
		p.requests, p.units = p.requests+requests, p.units+units
		p.longest = max(p.longest, at-began)
		for _, s := range due {
			s.due = min(at+s.every, max(s.dead, at))
		}
		open = slices.DeleteFunc(open, func(s *subject) bool { return s.dead <= at })
	}
	return p
}

// sleep waits for d. It returns false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

func withSortKey(k leasehold.Key) []leasehold.GetOption {
	if k.Sort == "" {
		return nil
	}
	return []leasehold.GetOption{leasehold.WithSortKey(k.Sort)}
}
