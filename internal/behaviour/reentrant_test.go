package behaviour_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestReentrantAcquireAppliesOrRejectsEachOption(t *testing.T) {
	attributes := func(name, value string) leasehold.AcquireOption {
		return leasehold.WithAttributes(map[string]types.AttributeValue{name: lab.Str(value)})
	}
	none := leasehold.WithAttributes(map[string]types.AttributeValue{"none": nil})
	type row struct {
		opt  leasehold.AcquireOption
		want string // part of the expected error's text; empty if no error is expected
	}
	lab.Each(t, map[string]row{
		"nothing else":            {leasehold.Reentrant(), ""},
		"no wait":                 {leasehold.NoWait(), ""},
		"a record that is there":  {leasehold.IfExists(), ""},
		"no renewal":              {leasehold.WithoutRenewal(), ""},
		"the data it has":         {leasehold.WithData([]byte("data")), ""},
		"data if there is none":   {leasehold.WithInitialData([]byte("other")), ""},
		"an attribute it has":     {attributes("color", "red"), ""},
		"no attribute it lacks":   {none, ""},
		"its lease":               {leasehold.WithLease(30 * time.Second), ""},
		"its release":             {leasehold.DeleteOnRelease(false), ""},
		"other data":              {leasehold.WithData([]byte("other")), "other data or attributes: store them with Renew"},
		"no data":                 {leasehold.WithData(nil), "other data or attributes"},
		"another attribute":       {attributes("size", "10"), "other data or attributes"},
		"another value":           {attributes("color", "blue"), "other data or attributes"},
		"no attribute it has":     {leasehold.WithAttributes(map[string]types.AttributeValue{"color": nil}), "other data or attributes"},
		"a longer lease":          {leasehold.WithLease(time.Minute), "its lease is 30s, not 1m0s: change it with Renew"},
		"the lease of its client": {leasehold.WithLease(20 * time.Second), "its lease is 30s, not 20s"},
		"deletion":                {leasehold.DeleteOnRelease(true), "its release policy is settled"},
	}, func(t *testing.T, w *lab.World, tc row) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "job", leasehold.WithLease(30*time.Second), leasehold.WithData([]byte("data")), attributes("color", "red"))
		ctx := lock.Context()
		wire.Sent()
		opts := []leasehold.AcquireOption{leasehold.Reentrant(), tc.opt}
		_, one := c.Acquire(ctx, "job", opts...)
		_, all := c.AcquireAll(ctx, leasehold.Keys("job"), opts...)
		_, anyOf := c.AcquireAny(ctx, leasehold.Keys("job"), opts...)
		do := c.Do(ctx, "job", func(context.Context, *leasehold.Lock) error { return nil }, opts...)
		for call, err := range map[string]error{"Acquire": one, "AcquireAll": all, "AcquireAny": anyOf, "Do": do} {
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s: error %v, want %q", call, err, tc.want)
			}
		}
		if n := len(wire.Sent()); n > 0 || lock.Err() != nil {
			t.Errorf("%d requests, the lock: %v", n, lock.Err())
		}
		_ = c.Close(t.Context())
	})
}

func TestReentrantHandlesHaveSeparateExpiryWarnings(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire) {
		var mu sync.Mutex
		warned := map[string][]*leasehold.Lock{}
		warning := func(name string) leasehold.AcquireOption {
			return leasehold.WithExpiryWarning(5*time.Second, func(l *leasehold.Lock) {
				mu.Lock()
				defer mu.Unlock()
				warned[name] = append(warned[name], l)
			})
		}
		outer := w.Acquire(c, "job", warning("outer"))
		share := func(name string) *leasehold.Lock {
			inner, err := c.Acquire(outer.Context(), "job", leasehold.Reentrant(), warning(name))
			if err != nil {
				t.Fatal(err)
			}
			return inner
		}
		inner, closed := share("inner"), share("closed")
		g, err := c.AcquireAll(outer.Context(), leasehold.Keys("job"), leasehold.Reentrant(), warning("group"))
		if err != nil {
			t.Fatal(err)
		}
		w.Release(closed)
		wire.SetFault(lab.Cut)
		lab.Elapse(16 * time.Second)
		late := share("late") // the lock is trusted for less than the warning time
		lab.Elapse(time.Second)
		mu.Lock()
		want := map[string][]*leasehold.Lock{"outer": {outer}, "inner": {inner}, "group": {g.Locks()[0]}, "late": {late}}
		for name, locks := range want {
			if !slices.Equal(warned[name], locks) {
				t.Errorf("%s: warned %v, want %v", name, warned[name], locks)
			}
		}
		if n := len(warned["closed"]); n > 0 {
			t.Errorf("a handle that was released has had %d warnings", n)
		}
		mu.Unlock()
		lab.Elapse(5 * time.Second)
		lab.WantErr(t, "cut off", inner.Err(), leasehold.ErrLost)
		mu.Lock()
		defer mu.Unlock()
		for name, locks := range warned {
			if len(locks) != 1 {
				t.Errorf("%s: warned %d times", name, len(locks))
			}
		}
		_ = outer.Release(t.Context())
	})
}

func TestReleaseOfEarlierHandleReportsThatNothingIsStored(t *testing.T) {
	attributes := func(name, value string) leasehold.ReleaseOption {
		return leasehold.WithAttributes(map[string]types.AttributeValue{name: lab.Str(value)})
	}
	for name, tc := range map[string]struct {
		opt    leasehold.ReleaseOption
		stored bool // true if the value is already stored, or if there is nothing to store
	}{
		"nothing":             {leasehold.DeleteOnRelease(false), true},
		"the data it has":     {leasehold.WithData([]byte("data")), true},
		"an attribute it has": {attributes("color", "red"), true},
		"other data":          {leasehold.WithData([]byte("other")), false},
		"no data":             {leasehold.WithData(nil), false},
		"another attribute":   {attributes("size", "10"), false},
	} {
		for how, release := range map[string]func(context.Context, *leasehold.Lock) error{
			"release": func(ctx context.Context, l *leasehold.Lock) error { return l.Release(ctx, tc.opt) },
			"commit and release": func(ctx context.Context, l *leasehold.Lock) error {
				return l.CommitAndRelease(ctx, lab.Writes(lab.Note("a", "1")), tc.opt)
			},
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				lab.InBubble(t, func(t *testing.T, w *lab.World) {
					w.Work()
					c, _ := w.Client(lab.Config())
					outer := w.Acquire(c, "job", leasehold.WithData([]byte("data")), leasehold.WithAttributes(map[string]types.AttributeValue{"color": lab.Str("red")}))
					inner := share(w, c, outer)
					switch err := release(t.Context(), inner); {
					case tc.stored && err != nil:
						t.Error(err)
					case !tc.stored && (err == nil || !strings.Contains(err.Error(), "store them with Renew")):
						t.Errorf("error %v", err)
					}
					lab.WantErr(t, "the handle", inner.Err(), leasehold.ErrReleased)
					if landed := w.WorkItem("a") != nil; landed != (tc.stored && how == "commit and release") {
						t.Errorf("committed: %t", landed)
					}
					lab.WantErr(t, "again", inner.Release(t.Context(), tc.opt), nil)
					w.Release(outer)
					wantReleased(w, "job")
				})
			})
		}
	}
}

func TestReentrantAcquireSharesGrantOfContext(t *testing.T) {
	oneLock(t, func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire, lock *leasehold.Lock) {
		wire.Sent()
		lab.WantErr(t, "without Reentrant", lab.ErrorOf(c.Acquire(lock.Context(), "job")), leasehold.ErrDeadlock)
		bound, cancel := lock.Bind(t.Context())
		defer cancel()
		inner, err := c.Acquire(bound, "job", leasehold.Reentrant())
		if err != nil || inner.Token() != lock.Token() {
			t.Fatalf("%v", err)
		}
		if err := inner.Release(t.Context()); err != nil || inner.Err() == nil || lock.Err() != nil {
			t.Errorf("after the inner release: %v, inner %v, outer %v", err, inner.Err(), lock.Err())
		}
		wantSent(t, wire, 0)
		lab.WantErr(t, "again", inner.Release(t.Context()), nil)
		w.Release(lock)
		wantSent(t, wire, 1)
	})
}
