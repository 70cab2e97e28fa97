package rwlock_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/rwlock"
	"github.com/leasehold-go/leasehold/table"
)

func TestAReaderMakesNoRowIfItIsToExist(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, b := newReadWriter(w, "set"), newReadWriter(w, "set")
		for _, acquire := range []func(context.Context, ...leasehold.AcquireOption) (*leasehold.Lock, error){a.l.AcquireRead, a.l.AcquireWrite} {
			if _, err := acquire(t.Context(), leasehold.IfExists()); !errors.Is(err, leasehold.ErrNotFound) {
				t.Errorf("no row: %v", err)
			}
			b.write()
			waiter := begin(t.Context(), func(ctx context.Context, _ ...leasehold.AcquireOption) (*leasehold.Lock, error) {
				return acquire(ctx, leasehold.IfExists())
			})
			lab.Elapse(time.Minute)
			w.Delete("set")
			lab.Elapse(2 * time.Second)
			select {
			case err := <-waiter.err:
				if !errors.Is(err, leasehold.ErrNotFound) {
					t.Error(err)
				}
			default:
				t.Errorf("a waiter whose row was deleted made one: %v", w.Item("set"))
			}
			w.Delete("set")
		}
	})
}

func TestAFreeReadWriteRowMayBeCollectedAfterAWriterAndAHeldOneNever(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		p := newReadWriter(w, "set")
		lock := p.write()
		if w.Item("set")["expiresAt"] != nil {
			t.Error("a held row may be collected")
		}
		w.Release(lock)
		if w.Item("set")["expiresAt"] == nil {
			t.Error("a row that a writer left is never collected")
		}
		r := p.read()
		if w.Item("set")["expiresAt"] != nil {
			t.Error("a row that is read may be collected")
		}
		w.Release(r)
	})
}

func TestADamagedReadWriteRowIsNeverGranted(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		p := newReadWriter(w, "set")
		w.Release(p.write())
		w.Release(p.read(leasehold.NoWait()))
		row := w.Item("set")
		entry := func(m map[string]types.AttributeValue) types.AttributeValue {
			return &types.AttributeValueMemberM{Value: m}
		}
		for name, damage := range map[string]map[string]types.AttributeValue{
			"no readers":        {"readers": nil},
			"readers a list":    {"readers": &types.AttributeValueMemberL{}},
			"no tokens":         {"tokens": nil},
			"tokens a string":   {"tokens": lab.Str("x")},
			"no token":          {"fencingToken": nil},
			"a token too large": {"fencingToken": lab.Num("9007199254740991")},
			"a reader a string": {"readers": entry(map[string]types.AttributeValue{"g": lab.Str("x")})},
			"a reader of none":  {"readers": entry(map[string]types.AttributeValue{"g": entry(nil)})},
			"a writer a string": {"writer": lab.Str("x")},
			"a nameless intent": {"intent": entry(map[string]types.AttributeValue{})},
		} {
			item := map[string]types.AttributeValue{}
			for n, v := range row {
				item[n] = v
			}
			w.Put(item)
			w.Update("set", damage)
			before := w.Item("set")
			for _, acquire := range []func(context.Context, ...leasehold.AcquireOption) (*leasehold.Lock, error){p.l.AcquireRead, p.l.AcquireWrite} {
				if _, err := acquire(t.Context(), leasehold.NoWait()); !errors.Is(err, leasehold.ErrRecord) {
					t.Errorf("%s: %v", name, err)
				}
				lab.Elapse(time.Second) // what has landed is undone
				for attribute := range damage {
					if now := w.Item("set"); !reflect.DeepEqual(now[attribute], before[attribute]) {
						t.Errorf("%s: overwritten with %v", name, now[attribute])
					}
				}
			}
		}
	})
}

func TestAKeyIsAPlainLockOrAReadWriteLock(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		p := newReadWriter(w, "set")
		w.Release(p.read())
		if _, err := p.c.TryAcquire(t.Context(), "set"); !errors.Is(err, leasehold.ErrRecord) {
			t.Errorf("a plain lock on it: %v", err)
		}
		w.Release(w.Acquire(p.c, "plain"))
		plain := newReadWriter(w, "plain")
		for _, acquire := range []func(context.Context, ...leasehold.AcquireOption) (*leasehold.Lock, error){plain.l.AcquireRead, plain.l.AcquireWrite} {
			if _, err := acquire(t.Context()); !errors.Is(err, leasehold.ErrRecord) {
				t.Errorf("a read/write lock on a plain one: %v", err)
			}
		}
	})
}

func TestWhatAReadWriteLockCannotDoIsRefusedBeforeAnythingIsSent(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		p := newReadWriter(w, "set")
		for name, opt := range map[string]leasehold.AcquireOption{
			"data": leasehold.WithData([]byte("x")), "initial data": leasehold.WithInitialData([]byte("x")),
			"attributes": leasehold.WithAttributes(map[string]types.AttributeValue{"a": lab.Str("b")}), "delete": leasehold.DeleteOnRelease(),
		} {
			if _, err := p.l.AcquireRead(t.Context(), opt); !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := len(p.wire.Sent()); n != 0 {
			t.Errorf("%d requests", n)
		}
		lock := p.read()
		p.wire.Sent()
		if err := lock.Renew(t.Context(), leasehold.WithData(nil)); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("renew with data: %v", err)
		}
		if _, err := lock.Detach(); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("detach: %v", err)
		}
		if err := lock.Release(t.Context(), leasehold.DeleteOnRelease()); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("delete: %v", err)
		}
		if n := len(p.wire.Sent()); n != 0 {
			t.Errorf("%d requests", n)
		}
		w.Release(lock)

		cfg := lab.Config()
		cfg.Layout = layout.AWSLabs{}
		c, _ := w.Client(cfg)
		if _, err := rwlock.New(c, "set"); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("another layout: %v", err)
		}
		if _, err := rwlock.New(p.c, ""); err == nil {
			t.Error("an empty key was accepted")
		}
	})
}

func TestTheSortKeyTellsTwoReadWriteLocksApart(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		spec := table.Spec{Name: "sorted", Layout: layout.Native{SortKey: "shard"}}
		if err := table.Create(t.Context(), w.DB, spec); err != nil {
			t.Fatal(err)
		}
		p := newReadWriter(w, "set", func(c *leasehold.Config) { c.Table, c.Layout = spec.Name, spec.Layout })
		one, other := p.write(leasehold.WithSortKey("1")), p.write(leasehold.WithSortKey("2"))
		if _, err := p.l.AcquireRead(t.Context(), leasehold.WithSortKey("1"), leasehold.NoWait()); !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("held: %v", err)
		}
		if _, err := p.l.AcquireRead(t.Context()); err == nil {
			t.Error("a key without its sort key was acquired")
		}
		w.Release(one)
		w.Release(p.read(leasehold.WithSortKey("1")))
		w.Release(other)
	})
}
