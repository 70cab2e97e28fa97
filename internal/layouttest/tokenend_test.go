package layouttest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
)

// setToken sets the token of the only record in the table.
func setToken(t *testing.T, w *lab.World, n string) {
	t.Helper()
	for _, item := range w.Scan() {
		item["fencingToken"] = lab.Num(n)
		w.Put(item)
	}
}

func TestGrantsNearLastTokenWriteOnlyReadableRecords(t *testing.T) { // 2^53-2 is the highest token that the decoder accepts
	layouts := map[string]layout.Layout{"native": layout.Native{}, "awslabs": layout.AWSLabs{}, "dynamolock": layout.Dynamolock{},
		"python_dynamodb_lock": layout.PythonDynamoDBLock{}, "dynamo-dlm": layout.DynamoDLM{}, "dyndb-mutex": layout.DyndbMutex{}}
	type acquire func(c *leasehold.Client, opts ...leasehold.AcquireOption) (*leasehold.Lock, error)
	plain := func(c *leasehold.Client, opts ...leasehold.AcquireOption) (*leasehold.Lock, error) {
		return c.Acquire(context.Background(), "job", opts...)
	}
	check := func(name string, l layout.Layout, by acquire, next func(t *testing.T, w *lab.World, c *leasehold.Client, lock *leasehold.Lock)) {
		t.Run(name, func(t *testing.T) {
			lab.InLayout(t, l, func(t *testing.T, w *lab.World, cfg leasehold.Config) {
				c, _ := w.Client(cfg)
				first := lab.Must(by(c, leasehold.WithoutRenewal()))(t)
				next(t, w, c, first)
				for r, err := range c.List(t.Context(), leasehold.ListOptions{}) {
					if err != nil {
						t.Errorf("%+v: %v", r, err)
					}
				}
				// The call neither spins nor waits for a key that cannot be granted, and
				// its error contains advice.
				began := time.Now()
				other, _ := w.Client(cfg)
				_, err := by(other, leasehold.NoWait())
				var refused *leasehold.RecordError
				if !errors.As(err, &refused) || refused.Attribute != "fencingToken" || time.Since(began) > time.Minute {
					t.Errorf("after the last token: %v", err)
				}
				_ = c.Close(t.Context())
			})
		})
	}
	for name, l := range layouts {
		check(name+" taken over at the last", l, plain, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *leasehold.Lock) {
			setToken(t, w, "9007199254740990")
			lab.Elapse(time.Minute)
		})
		check(name+" taken over", l, plain, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *leasehold.Lock) {
			setToken(t, w, "9007199254740989")
			lock, err := plain(c, leasehold.WithoutRenewal())
			if err != nil || lock.Token() != 9007199254740990 {
				t.Fatal(err)
			}
			if err := lock.Renew(t.Context()); err != nil {
				t.Error(err)
			}
		})
		if !l.Capabilities().KeepOnRelease {
			continue
		}
		check(name+" released", l, plain, func(t *testing.T, w *lab.World, c *leasehold.Client, lock *leasehold.Lock) {
			w.Release(lock)
			setToken(t, w, "9007199254740990")
		})
		check(name+" granted and released", l, plain, func(t *testing.T, w *lab.World, c *leasehold.Client, lock *leasehold.Lock) {
			w.Release(lock)
			setToken(t, w, "9007199254740989")
			w.Release(w.Acquire(c, "job"))
		})
		check(name+" handed over", l, plain, func(t *testing.T, w *lab.World, c *leasehold.Client, lock *leasehold.Lock) {
			w.Release(lock)
			setToken(t, w, "9007199254740989")
			last := w.Acquire(c, "job")
			next := make(chan error, 1)
			go func() { next <- lab.ErrorOf(c.Acquire(t.Context(), "job")) }()
			lab.Elapse(time.Second)
			w.Release(last)
			if err := <-next; !errors.As(err, new(*leasehold.RecordError)) {
				t.Error(err)
			}
		})
	}
}

func TestAcquireAtHighestTokenReturnsErrorWithAdvice(t *testing.T) {
	for name, l := range map[string]layout.Layout{"native": layout.Native{}, "awslabs": layout.AWSLabs{}, "dynamo-dlm": layout.DynamoDLM{}} {
		t.Run(name, func(t *testing.T) {
			lab.InLayout(t, l, func(t *testing.T, w *lab.World, cfg leasehold.Config) {
				c, _ := w.Client(cfg)
				lab.Must(c.Acquire(t.Context(), "job", leasehold.WithoutRenewal()))(t)
				setToken(t, w, "9007199254740990")
				other, _ := w.Client(cfg)
				_, err := other.TryAcquire(t.Context(), "job")
				const want = " in table locks is at the last fencing token, 2^53-2: choose another key or, once nobody holds this one, " +
					"delete its record: tokens begin anew then, below the tokens that targets have seen"
				if err == nil || !strings.HasSuffix(err.Error(), want) || !errors.As(err, new(*leasehold.RecordError)) {
					t.Errorf("%v", err)
				}
				_ = c.Close(t.Context())
			})
		})
	}
}
