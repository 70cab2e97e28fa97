package leasehold_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/table"
)

// sightings is what a Watch has yielded, changes alone.
type sightings struct {
	seen []leasehold.Sighting
	err  error
	over chan struct{}
	stop context.CancelFunc
}

func (w *world) watch(c *leasehold.Client, key string, opts ...leasehold.GetOption) *sightings {
	ctx, stop := context.WithCancel(w.t.Context())
	s := &sightings{over: make(chan struct{}), stop: stop}
	go func() {
		defer close(s.over)
		for seen, err := range c.Watch(ctx, key, opts...) {
			if s.err = err; err != nil {
				continue // what comes after it would show
			}
			if n := len(s.seen); n == 0 || seen.NewGrant || seen.Dead != s.seen[n-1].Dead || (seen.Holder == nil) != (s.seen[n-1].Holder == nil) {
				s.seen = append(s.seen, seen)
			}
		}
	}()
	synctest.Wait()
	return s
}

// end ends the Watch and returns what it has shown.
func (s *sightings) end() ([]leasehold.Sighting, error) {
	s.stop()
	<-s.over
	return s.seen, s.err
}

func TestAWatchShowsEveryGrantOnceItsEndAndTheDeathOfItsHolder(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.client(config())
		dies, dying := w.client(config())
		watches, wire := w.client(config())
		s := w.watch(watches, "job")
		elapse(time.Minute)
		first := w.acquire(c, "job")
		elapse(time.Minute) // renewals are no grant
		w.release(first)
		elapse(polls)
		second := w.acquire(dies, "job", leasehold.WithData([]byte("d")))
		elapse(polls)
		dying.setFault(cut)
		elapse(20*time.Second + polls)
		seen, err := s.end()
		if err != nil || len(seen) != 5 {
			t.Fatalf("%d sightings, error %v: %+v", len(seen), err, seen)
		}
		for i, want := range []struct {
			token           int64
			held, new, dead bool
		}{
			{},
			{first.Token(), true, true, false},
			{},
			{second.Token(), true, true, false},
			{second.Token(), true, false, true},
		} {
			got := seen[i]
			if (got.Holder != nil) != want.held || got.NewGrant != want.new || got.Dead != want.dead ||
				want.held && (got.Holder.Token != want.token || got.Holder.Key.Partition != "job") {
				t.Errorf("sighting %d is %+v, want %+v", i, got, want)
			}
		}
		for _, c := range wire.sent() {
			if c.op != "GetItem" {
				t.Errorf("a watch sent %s", c.op)
			}
		}
	})
}

func TestAWatchIsOfOneSortKey(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		spec := table.Spec{Name: "sorted", Layout: layout.Native{SortKey: "shard"}}
		if err := table.Create(t.Context(), w.db, spec); err != nil {
			t.Fatal(err)
		}
		c, _ := w.client(locksOf(spec.Name, spec.Layout))
		lock := w.acquire(c, "job", leasehold.WithSortKey("1"))
		defer w.release(lock)
		for sort, held := range map[string]bool{"1": true, "2": false} {
			seen, err := w.watch(c, "job", leasehold.WithSortKey(sort)).end()
			if err != nil || len(seen) != 1 || (seen[0].Holder != nil) != held {
				t.Errorf("sort key %s: %+v, %v", sort, seen, err)
			}
		}
		if _, err := w.watch(c, "job").end(); err == nil {
			t.Error("a key without its sort key was watched")
		}
	})
}

func TestAWatchOfAReadWriteLockIsAnErrorAndEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, _ := w.client(config())
		lock, err := c.AcquireRead(t.Context(), "set")
		if err != nil {
			t.Fatal(err)
		}
		defer w.release(lock)
		if seen, err := w.watch(c, "set").end(); len(seen) != 0 || !errors.Is(err, leasehold.ErrBadRecord) {
			t.Errorf("%+v, %v", seen, err)
		}
	})
}
