package holders

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// errObservedEnough ends an observation when Observer.Limit has passed.
var errObservedEnough = errors.New("observed for long enough")

// watch is an observation in progress. Its times are counted from the start of the observation.
type watch struct {
	Observer
	began time.Time
	open  []*subject // holders not yet known to be live or dead, in the order of the records

	failed error         // error of the last read; nil if the read succeeded
	since  time.Duration // time when the first failed read after the last successful read ended
}

// mayPass records that a read failed with err, and reports whether the failure may be temporary. If
// so, the read is repeated. mayPass returns false if DynamoDB has rejected the request, or if all
// reads have failed for the time givenUpAfter.
func (w *watch) mayPass(err error) bool {
	now := time.Since(w.began)
	if w.failed == nil {
		w.since = now
	}
	w.failed = err
	return decide.Classify(err).Cause.After(true) != decide.Refused && durations.Less(now, w.since) < givenUpAfter
}

// subject is one holder that a watch observes.
type subject struct {
	index   int
	found   Observation   // what the observation has found so far
	dead    time.Duration // time at which the holder becomes dead if it does not renew
	every   time.Duration // interval between two reads
	due     time.Duration // time of the next read
	settled bool
}

// latest returns the latest time for the next read. A read may be delayed until then, so that
// one request reads the records of several subjects.
func (s *subject) latest() time.Duration { return durations.Sum(s.due, s.every/8) }

const (
	minReadInterval = 10 * time.Millisecond // shortest interval between reads, however short the lease
	maxReadInterval = 10 * time.Second
	retryReading    = time.Second // pause after a failed read
	givenUpAfter    = 10 * time.Second
)

// readInterval returns the interval between reads of a record: 0.3 of "left", the time until its
// holder counts as dead. By the second read, a live holder has usually renewed: it renews four
// times per lease. A dead holder's record is usually read five times.
func readInterval(left time.Duration) time.Duration {
	return min(max(durations.Scale(left, 0.3), minReadInterval), maxReadInterval)
}

// next returns the time of the next read, and the subjects to read then. It delays the read a
// little if other subjects are due soon after.
func (w *watch) next(open []*subject) (at time.Duration, due []*subject) {
	first, last := open[0].due, open[0].latest()
	for _, s := range open {
		first, last = min(first, s.due), min(last, s.latest())
	}
	for _, s := range open {
		if s.due <= last {
			at, due = max(at, s.due), append(due, s)
		}
	}
	if keys, sessions := w.keys(due); w.Reader.lists(keys + sessions) {
		due = open // a listing contains all records, so all subjects are read
	}
	return at, due
}

// keys returns the number of records, and the number of session rows, that must be read for the
// given subjects.
func (w *watch) keys(of []*subject) (keys, sessions int) {
	records, ids := map[leasehold.Key]bool{}, map[string]bool{}
	for _, s := range of {
		records[s.found.Record.Key] = true
		if id := s.found.Record.Session; id != "" {
			ids[id] = true
		}
	}
	return len(records), len(ids)
}

// read reads the records of the subjects once. It calls "settled" for each subject whose state is
// known after the read.
func (w *watch) read(ctx context.Context, subjects []*subject, settled func(int, Observation)) error {
	look := liveness.Reading{Asked: time.Now()}
	items, err := w.rows(ctx, subjects)
	if err != nil {
		return err
	}
	look.Answered = time.Now()
	for _, s := range subjects {
		found, done := w.judge(s, items, look)
		if s.settled = done; !done {
			continue
		}
		settled(s.index, found)
	}
	// Use a new slice, because the slice in the parameter "subjects" may be w.open itself.
	var open []*subject
	for _, s := range w.open {
		if !s.settled {
			open = append(open, s)
		}
	}
	w.open = open
	return nil
}

// rows reads the records of subjects, and the rows of the sessions that these records contained
// when they were last read. If a record now contains another session, rows reads the row of that
// session by a second request.
func (w *watch) rows(ctx context.Context, subjects []*subject) (map[protocol.Key]protocol.Item, error) {
	sharing := w.Reader.sharing
	asked := map[protocol.Key]bool{}
	var keys []protocol.Key
	add := func(k protocol.Key) {
		if !asked[k] {
			asked[k], keys = true, append(keys, k)
		}
	}
	for _, s := range subjects {
		add(s.found.Record.Key)
		if id := s.found.Record.Session; id != "" && sharing != nil {
			add(sharing.SessionKey(id))
		}
	}
	items, err := w.Reader.read(ctx, keys)
	if err != nil || sharing == nil {
		return items, err
	}
	keys = nil
	for _, s := range subjects {
		if r, err := w.Reader.proto.Decode(items[s.found.Record.Key]); err == nil && r.Session != "" {
			add(sharing.SessionKey(r.Session))
		}
	}
	more, err := w.Reader.ByKey(ctx, keys)
	maps.Copy(items, more)
	return items, err
}

// judge evaluates a read of the subject's record. It returns what the observation has found,
// and whether the holder's state is now known.
func (w *watch) judge(s *subject, items map[protocol.Key]protocol.Item, look liveness.Reading) (Observation, bool) {
	key := s.found.Record.Key
	item := items[key]
	if item == nil {
		s.found.Gone = true
		return s.found, true
	}
	r, err := w.Reader.proto.Decode(item)
	if err != nil {
		s.found.Err = w.Reader.AsRecordError(key, item, err)
		return s.found, true
	}
	s.found.Record = RecordOf(r)
	if r.Released {
		return s.found, true
	}
	if s.found.Shared = w.Reader.sharing != nil && r.Session != ""; s.found.Shared {
		if r, err = w.Reader.sessionIn(items, r.Session); err != nil {
			s.found.Err = err
			return s.found, true
		}
		s.found.ended = r.Released
		if !r.Released && !protocol.IsNoRow(r.Version) {
			s.found.Record.Lease = r.Lease
		}
	}
	// The record in s came from a listing, and may have been out of date. So the holder counts as
	// dead only if it does not renew within a lease from the first read of this observation.
	s.found.Beat = w.rule.Next(s.found.Beat, r, look)
	switch beat := s.found.Beat; {
	case beat.Dead:
		s.found.State = Dead
	case beat.Renewals > 0:
		s.found.State = Live
	default:
		asked, answered := look.Asked.Sub(w.began), look.Answered.Sub(w.began)
		s.dead = beat.Until.Sub(w.began)
		if s.every == 0 {
			s.every = readInterval(durations.Less(s.dead, asked))
		}
		s.due = min(durations.Sum(answered, s.every), max(s.dead, answered))
		return s.found, false
	}
	return s.found, true
}

// later schedules the next read of the given subjects after a failed read.
func (w *watch) later(due []*subject) {
	for _, s := range due {
		s.due = durations.Sum(time.Since(w.began), retryReading)
	}
}

// end reports the state of all undecided subjects as unknown, with the error "why". If the time
// limit was reached, it reports the error of the last read instead, or nil if that read succeeded.
func (w *watch) end(why error, settled func(int, Observation)) {
	if errors.Is(why, errObservedEnough) {
		why = w.failed
	}
	for _, s := range w.open {
		s.found.State, s.found.Err = Unknown, why
		settled(s.index, s.found)
	}
	w.open = nil
}

// Plan describes the rest of an observation. Holders is the number of undecided holders. The other
// fields are the time and the cost if no holder is live. If some holders are live, the observation
// takes less.
type Plan struct {
	Holders  int
	Longest  time.Duration
	Requests int
	Units    float64 // least number of read units; zero if read units cost nothing
}

// plan returns the Plan for the rest of the observation. It assumes that no holder is live.
func (w *watch) plan() Plan {
	began := time.Since(w.began)
	p := Plan{Holders: len(w.open)}
	open := make([]*subject, len(w.open))
	for i, s := range w.open {
		left := *s
		open[i] = &left
	}
	for len(open) > 0 {
		at, due := w.next(open)
		if w.Limit > 0 && at > w.Limit {
			p.Longest = durations.Less(w.Limit, began)
			break
		}
		requests, units := w.Reader.cost(w.keys(due))
		p.Requests, p.Units = p.Requests+requests, p.Units+units
		p.Longest = max(p.Longest, durations.Less(at, began))
		for _, s := range due {
			s.due = min(durations.Sum(at, s.every), max(s.dead, at))
		}
		open = slices.DeleteFunc(open, func(s *subject) bool { return s.dead <= at })
	}
	if w.FreeReads {
		p.Units = 0
	}
	return p
}
