package behaviour_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/table"
)

func TestGetReturnsRecordsOfHeldAndReleasedLocks(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		lab.WantErr(t, "none", lab.ErrorOf(c.Get(t.Context(), "job")), leasehold.ErrNotFound)
		lock := w.Acquire(c, "job")
		if r, err := c.Get(t.Context(), "job"); err != nil || r.Token != lock.Token() || r.Released {
			t.Errorf("held: %+v, %v", r, err)
		}
		w.Release(lock)
		if r, err := c.Get(t.Context(), "job"); err != nil || !r.Released {
			t.Errorf("released: %+v, %v", r, err)
		}
		w.Put(map[string]types.AttributeValue{"key": lab.Str("bad")})
		lab.WantAs[*leasehold.RecordError](t, "damaged record", lab.ErrorOf(c.Get(t.Context(), "bad")))
	})
}

func TestListContinuesAfterDamagedRecord(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		for _, key := range []string{"a/1", "a/2", "b/1"} {
			w.Release(w.Acquire(c, key))
		}
		w.Put(map[string]types.AttributeValue{"key": lab.Str("a/bad")})
		var good, bad int
		for r, err := range c.List(t.Context(), leasehold.ListOptions{Prefix: "a/"}) {
			var damaged *leasehold.RecordError
			switch {
			case errors.As(err, &damaged) && damaged.Key.Partition == "a/bad":
				bad++
			case err == nil && r.Key.Partition[:2] == "a/":
				good++
			default:
				t.Errorf("%+v, %v", r, err)
			}
		}
		lab.Want(t, "records", good, 2)
		lab.Want(t, "damaged records", bad, 1)
		n := 0
		for r, err := range c.List(t.Context(), leasehold.ListOptions{Partition: "b/1"}) {
			lab.WantErr(t, "listed", err, nil)
			lab.Want(t, "key", r.Key.Partition, "b/1")
			n++
		}
		lab.Want(t, "records in the partition", n, 1)
		w.Delete("a/bad")
		keys := func(opts leasehold.ListOptions) (keys []leasehold.Key) {
			for r, err := range c.List(t.Context(), opts) {
				lab.OK(t, err)
				keys = append(keys, r.Key)
			}
			return keys
		}
		all := keys(leasehold.ListOptions{})
		if rest := keys(leasehold.ListOptions{After: all[0]}); len(all) != 3 || len(rest) != 2 || rest[0] != all[1] {
			t.Errorf("all keys %v, after the first %v", all, rest)
		}
	})
}

func TestListSkipsSessionRows(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.SharedConfig())
		var want []string // keys that sort before the session's row, and keys that sort after it
		for letter := 'A'; letter <= 'z'; letter++ {
			want = append(want, string(letter))
			w.Acquire(c, string(letter))
		}
		var got []string
		for r, err := range c.List(t.Context(), leasehold.ListOptions{}) {
			if got = append(got, r.Key.Partition); err != nil {
				t.Errorf("listed %v: %v", r.Key, err)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("listed %q", got)
		}
		lab.WantAs[*leasehold.RecordError](t, "session read as a lock", lab.ErrorOf(c.Get(t.Context(), w.Sessions()[0])))
		_ = c.Close(t.Context())
	})
}

// polls is the longest time from a change until Watch reports it: twice the interval between two
// polls.
const polls = 2 * 500 * time.Millisecond

// sightings collects the results of one call of Watch.
type sightings struct {
	seen []leasehold.Sighting
	err  error
	over chan struct{}      // closed after the last result
	stop context.CancelFunc // cancels the context of Watch
}

func startWatch(w *lab.World, c *leasehold.Client, key string, opts ...leasehold.KeyOption) *sightings {
	ctx, stop := context.WithCancel(w.T.Context())
	s := &sightings{over: make(chan struct{}), stop: stop}
	go func() {
		defer close(s.over)
		for seen, err := range c.Watch(ctx, key, opts...) {
			if s.err != nil {
				w.T.Errorf("Watch has a result after its error: %v", s.err)
			}
			if s.err = err; err != nil {
				continue
			}
			if n := len(s.seen); n == 0 || seen.NewGrant || seen.Dead != s.seen[n-1].Dead || (seen.Holder == nil) != (s.seen[n-1].Holder == nil) {
				s.seen = append(s.seen, seen)
			}
		}
	}()
	synctest.Wait()
	return s
}

// end cancels the context of Watch. It returns the collected sightings and the error of Watch.
func (s *sightings) end() ([]leasehold.Sighting, error) {
	s.stop()
	<-s.over
	return s.seen, s.err
}

func TestWatchReportsEachChangeOfLockOnce(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		dies, dying := w.Client(lab.Config())
		watches, wire := w.Client(lab.Config())
		s := startWatch(w, watches, "job")
		lab.Elapse(time.Minute)
		first := w.Acquire(c, "job")
		lab.Elapse(time.Minute) // the lock is renewed in this minute, and Watch must not report a renewal as a new grant
		w.Release(first)
		lab.Elapse(polls)
		second := w.Acquire(dies, "job", leasehold.WithData([]byte("d")))
		lab.Elapse(polls)
		dying.SetFault(lab.Cut)
		lab.Elapse(20*time.Second + polls)
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
		for _, c := range wire.Sent() {
			lab.Want(t, "operation of a watch", c.Op, "GetItem")
		}
	})
}

func TestWatchObservesOnlyRequestedSortKey(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		spec := table.Spec{Name: "sorted", Layout: layout.Native{SortKey: "shard"}}
		lab.OK(t, table.Create(t.Context(), w.DB, spec))
		c, _, lock := w.Holding(lab.ConfigOf(spec.Name, spec.Layout), leasehold.WithSortKey("1"))
		defer w.Release(lock)
		for sort, held := range map[string]bool{"1": true, "2": false} {
			seen, err := startWatch(w, c, "job", leasehold.WithSortKey(sort)).end()
			if err != nil || len(seen) != 1 || (seen[0].Holder != nil) != held {
				t.Errorf("sort key %s: %+v, %v", sort, seen, err)
			}
		}
		lab.WantFailed(t, "watch without a sort key", lab.ErrorOf(startWatch(w, c, "job").end()))
	})
}

func TestWatchEmitsEventForEachThrottledRead(t *testing.T) {
	type row struct {
		fault              lab.Fault
		throttled, failing int // expected numbers of EventThrottled and EventWaitError events
	}
	lab.Each(t, map[string]row{
		"throttled":  {lab.Refused("ThrottlingException"), 3, 0},
		"unanswered": {lab.Drop, 0, 1},
	}, func(t *testing.T, w *lab.World, tc row) {
		c, wire, events := logged(w, lab.Config())
		failed := 0
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if failed++; failed <= 3 {
				return tc.fault(r)
			}
			return r.Send()
		})
		s := startWatch(w, c, "job")
		lab.Elapse(time.Minute)
		if seen, err := s.end(); len(seen) != 1 || err != nil {
			t.Errorf("%+v, %v", seen, err)
		}
		failing := events.of(leasehold.EventWaitError)
		for _, e := range failing {
			if op := (*leasehold.OpError)(nil); !errors.As(e.Err, &op) || op.Op != "watch" {
				t.Errorf("the event has the error %v", e.Err)
			}
		}
		told := events.of(leasehold.EventThrottled)
		lab.Want(t, "throttled events", len(told), tc.throttled)
		lab.Want(t, "wait error events", len(failing), tc.failing)
		for _, e := range told {
			if e.Key.Partition != "job" || e.Requests != 1 || e.Err == nil {
				t.Errorf("event %+v", e)
			}
		}
	})
}
