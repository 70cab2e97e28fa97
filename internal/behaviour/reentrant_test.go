package behaviour_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestReentrantAcquireFailsIfOptionWouldChangeGrant(t *testing.T) {
	attributes := func(name, value string) leasehold.AcquireOption {
		return leasehold.WithAttributes(map[string]types.AttributeValue{name: lab.Str(value)})
	}
	none := leasehold.WithAttributes(map[string]types.AttributeValue{"none": nil})
	type row struct {
		opt  leasehold.AcquireOption
		want string // part of the expected error's text; empty if no error is expected
	}
	lab.Each(t, map[string]row{
		"no other option":           {leasehold.Reentrant(), ""},
		"no wait":                   {leasehold.NoWait(), ""},
		"IfExists":                  {leasehold.IfExists(), ""},
		"no renewal":                {leasehold.WithoutRenewal(), ""},
		"same data":                 {leasehold.WithData([]byte("data")), ""},
		"initial data":              {leasehold.WithInitialData([]byte("other")), ""},
		"same attribute":            {attributes("color", "red"), ""},
		"missing attribute removed": {none, ""},
		"same lease":                {leasehold.WithLease(30 * time.Second), ""},
		"same release policy":       {leasehold.DeleteOnRelease(false), ""},
		"other data":                {leasehold.WithData([]byte("other")), "other data or attributes: store them with Renew"},
		"data removed":              {leasehold.WithData(nil), "other data or attributes"},
		"another attribute":         {attributes("size", "10"), "other data or attributes"},
		"another value":             {attributes("color", "blue"), "other data or attributes"},
		"attribute removed":         {leasehold.WithAttributes(map[string]types.AttributeValue{"color": nil}), "other data or attributes"},
		"a longer lease":            {leasehold.WithLease(time.Minute), "its lease is 30s, not 1m0s: change it with Renew"},
		"the client's lease":        {leasehold.WithLease(20 * time.Second), "its lease is 30s, not 20s"},
		"deletion":                  {leasehold.DeleteOnRelease(true), "its release policy is settled"},
	}, func(t *testing.T, w *lab.World, tc row) {
		c, wire, lock := w.Holding(lab.Config(), leasehold.WithLease(30*time.Second), leasehold.WithData([]byte("data")), attributes("color", "red"))
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
		lab.Want(t, "requests", len(wire.Sent()), 0)
		lab.WantErr(t, "lock", lock.Err(), nil)
		_ = c.Close(t.Context())
	})
}

func TestReentrantAcquireAcceptsAttributesThatGrantHasStored(t *testing.T) {
	list := func(of ...types.AttributeValue) types.AttributeValue { return &types.AttributeValueMemberL{Value: of} }
	lab.Each(t, map[string]types.AttributeValue{
		"number":               lab.Num("1.50"),
		"number with exponent": lab.Num("-1e3"),
		"zero":                 lab.Num("0.0"),
		"set":                  &types.AttributeValueMemberSS{Value: []string{"b", "a"}},
		"set of numbers":       &types.AttributeValueMemberNS{Value: []string{"10", "2.0"}},
		"set of bytes":         &types.AttributeValueMemberBS{Value: [][]byte{{2}, {1}}},
		"empty list":           list(),
		"empty map":            &types.AttributeValueMemberM{},
		"list of all":          list(lab.Num("1.0"), list(), &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"n": lab.Num("+2")}}),
	}, func(t *testing.T, w *lab.World, v types.AttributeValue) {
		same := leasehold.WithAttributes(map[string]types.AttributeValue{"a": v})
		c, _, lock := w.Holding(lab.Config(), same)
		inner, err := c.Acquire(lock.Context(), "job", leasehold.Reentrant(), same)
		lab.OK(t, err)
		lab.OK(t, inner.Release(t.Context(), same))
		_, err = c.Acquire(lock.Context(), "job", leasehold.Reentrant(), leasehold.WithAttributes(map[string]types.AttributeValue{"a": list(v)}))
		lab.WantFailed(t, "another value", err)
		w.Release(lock)
	})
}

func TestEveryHandleOfGrantHasOwnExpiryWarning(t *testing.T) {
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
			return lab.Must(c.Acquire(outer.Context(), "job", leasehold.Reentrant(), warning(name)))(t)
		}
		inner, closed := share("inner"), share("closed")
		g := lab.Must(c.AcquireAll(outer.Context(), leasehold.Keys("job"), leasehold.Reentrant(), warning("group")))(t)
		w.Release(closed)
		wire.SetFault(lab.Cut)
		lab.Elapse(16 * time.Second)
		late := share("late") // the remaining trust is already less than the warning time
		lab.Elapse(time.Second)
		mu.Lock()
		want := map[string][]*leasehold.Lock{"outer": {outer}, "inner": {inner}, "group": {g.Locks()[0]}, "late": {late}}
		for name, locks := range want {
			lab.Want(t, name+": locks warned of", warned[name], locks)
		}
		lab.Want(t, "warnings of the released handle", len(warned["closed"]), 0)
		mu.Unlock()
		lab.Elapse(5 * time.Second)
		lab.WantErr(t, "inner handle without a network", inner.Err(), leasehold.ErrLost)
		mu.Lock()
		defer mu.Unlock()
		for name, locks := range warned {
			lab.Want(t, name+": warnings", len(locks), 1)
		}
		_ = outer.Release(t.Context())
	})
}

func TestReleaseWithNewDataReturnsErrorIfOtherHandleRemains(t *testing.T) {
	attributes := func(name, value string) leasehold.ReleaseOption {
		return leasehold.WithAttributes(map[string]types.AttributeValue{name: lab.Str(value)})
	}
	for name, tc := range map[string]struct {
		opt    leasehold.ReleaseOption
		stored bool // true if the record already contains the option's value, or if the option stores nothing
	}{
		"no new value":      {leasehold.DeleteOnRelease(false), true},
		"same data":         {leasehold.WithData([]byte("data")), true},
		"same attribute":    {attributes("color", "red"), true},
		"other data":        {leasehold.WithData([]byte("other")), false},
		"data removed":      {leasehold.WithData(nil), false},
		"another attribute": {attributes("size", "10"), false},
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
					c, _, outer := w.Holding(lab.Config(), leasehold.WithData([]byte("data")), leasehold.WithAttributes(map[string]types.AttributeValue{"color": lab.Str("red")}))
					inner := share(w, c, outer)
					switch err := release(t.Context(), inner); {
					case tc.stored && err != nil:
						t.Error(err)
					case !tc.stored && (err == nil || !strings.Contains(err.Error(), "store them with Renew")):
						t.Errorf("error %v", err)
					}
					lab.WantErr(t, "the handle", inner.Err(), leasehold.ErrReleased)
					lab.Want(t, "committed", w.WorkItem("a") != nil, tc.stored && how == "commit and release")
					lab.WantErr(t, "again", inner.Release(t.Context(), tc.opt), nil)
					w.Release(outer)
					w.WantReleased("job")
				})
			})
		}
	}
}

func TestReentrantAcquireSharesGrantOfLockInContext(t *testing.T) {
	oneLock(t, func(t *testing.T, w *lab.World, c *leasehold.Client, wire *lab.Wire, lock *leasehold.Lock) {
		wire.Sent()
		lab.WantErr(t, "without Reentrant", lab.ErrorOf(c.Acquire(lock.Context(), "job")), leasehold.ErrDeadlock)
		bound, cancel := lock.Bind(t.Context())
		defer cancel()
		inner, err := c.Acquire(bound, "job", leasehold.Reentrant())
		lab.WantErr(t, "reentrant acquire", err, nil)
		lab.Want(t, "token", inner.Token(), lock.Token())
		if err := inner.Release(t.Context()); err != nil || inner.Err() == nil || lock.Err() != nil {
			t.Errorf("after the inner release: %v, inner %v, outer %v", err, inner.Err(), lock.Err())
		}
		wantSent(t, wire, 0)
		lab.WantErr(t, "again", inner.Release(t.Context()), nil)
		w.Release(lock)
		wantSent(t, wire, 1)
	})
}

func TestContextsOfReleasedLockHaveCauseErrReleased(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *lab.Wire) {
		type key struct{}
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
		lock := lab.Must(c.Acquire(ctx, "job"))(t)
		cancel()
		lab.WantErr(t, "lock after the end of Acquire's context", lock.Err(), nil)
		lab.Want(t, "value", lock.Context().Value(key{}), "value")
		if _, ok := lock.Context().Deadline(); ok {
			t.Error("a deadline")
		}
		derived, cancelDerived := context.WithCancel(lock.Context())
		defer cancelDerived()
		bound, cancelBound := lock.Bind(context.WithValue(t.Context(), key{}, "bound"))
		defer cancelBound()
		lab.Want(t, "value of the bound context", bound.Value(key{}), "bound")
		w.Release(lock)
		for name, ctx := range map[string]context.Context{"Context": lock.Context(), "derived": derived, "Bind": bound} {
			<-ctx.Done()
			lab.WantErr(t, name+": cause", context.Cause(ctx), leasehold.ErrReleased)
		}
	})
}

func TestTryAcquireReturnsErrDeadlockIfContextCarriesLockOfKey(t *testing.T) {
	oneClient(t, func(t *testing.T, w *lab.World, a *leasehold.Client, _ *lab.Wire) {
		b, _ := w.Client(lab.Config())
		outer := w.Acquire(a, "outer")
		inner := lab.Must(a.Acquire(outer.Context(), "inner"))(t)
		underBoth, cancel := outer.Bind(t.Context())
		defer cancel()
		underBoth, cancel = inner.Bind(underBoth)
		defer cancel()
		for name, tc := range map[string]struct {
			c    *leasehold.Client
			ctx  context.Context
			want error
		}{
			"context of the inner lock": {a, inner.Context(), leasehold.ErrDeadlock},
			"context of both locks":     {a, underBoth, leasehold.ErrDeadlock},
			"context without a lock":    {a, t.Context(), leasehold.ErrHeld},
			"another client":            {b, inner.Context(), leasehold.ErrHeld},
		} {
			lab.WantErr(t, name, lab.ErrorOf(tc.c.TryAcquire(tc.ctx, "outer")), tc.want)
		}
		w.Release(outer)
		again := lab.Must(a.Acquire(inner.Context(), "outer"))(t)
		w.Release(again)
		w.Release(inner)
	})
}

func TestLockStaysHeldAfterContextFromBindIsCancelled(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		lock := holds(w, "job")
		bound, cancel := lock.Bind(t.Context())
		derived, cancelDerived := context.WithCancel(bound)
		defer cancelDerived()
		cancel()
		for name, ctx := range map[string]context.Context{"Bind": bound, "derived": derived} {
			select {
			case <-ctx.Done():
			default:
				t.Errorf("%s is not cancelled", name)
			}
			lab.WantErr(t, name+": cause", context.Cause(ctx), context.Canceled)
		}
		lab.WantErr(t, "the lock", lock.Err(), nil)
		w.Release(lock)
	})
}
