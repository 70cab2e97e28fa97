package layouttest_test

import (
	"errors"
	"fmt"
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

// 2^53-2 is the largest possible token: the decoder refuses every larger one.
func TestGrantsNearLargestTokenWriteOnlyReadableRecords(t *testing.T) {
	layouts := map[string]layout.Layout{"native": layout.Native{}, "awslabs": layout.AWSLabs{}, "dynamolock": layout.Dynamolock{},
		"python_dynamodb_lock": layout.PythonDynamoDBLock{}, "dynamo-dlm": layout.DynamoDLM{}, "dyndb-mutex": layout.DyndbMutex{}}
	check := func(name string, l layout.Layout, next func(t *testing.T, w *lab.World, c *leasehold.Client, lock *leasehold.Lock)) {
		t.Run(name, func(t *testing.T) {
			lab.InLayout(t, l, func(t *testing.T, w *lab.World, cfg leasehold.Config) {
				c, _ := w.Client(cfg)
				first := w.Acquire(c, "job", leasehold.WithoutRenewal())
				next(t, w, c, first)
				for r, err := range c.List(t.Context(), leasehold.ListOptions{}) {
					if err != nil {
						t.Errorf("%+v: %v", r, err)
					}
				}
				// TryAcquire must return soon, because the key has no next token and can never be granted.
				// Its error must contain advice.
				began := time.Now()
				other, _ := w.Client(cfg)
				_, err := other.TryAcquire(t.Context(), "job")
				var refused *leasehold.RecordError
				if !errors.As(err, &refused) || refused.Attribute != "fencingToken" || time.Since(began) > time.Minute {
					t.Errorf("after the last token: %v", err)
				}
				const advice = " in table locks is at the last fencing token, 2^53-2: choose another key or, once nobody holds this one, " +
					"delete its record: tokens begin anew then, below the tokens that targets have seen"
				if !strings.HasSuffix(fmt.Sprint(err), advice) {
					t.Errorf("without advice: %v", err)
				}
				_ = c.Close(t.Context())
			})
		})
	}
	for name, l := range layouts {
		check(name+" held at the last", l, func(t *testing.T, w *lab.World, _ *leasehold.Client, _ *leasehold.Lock) {
			setToken(t, w, "9007199254740990")
		})
		check(name+" taken over at the last", l, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *leasehold.Lock) {
			setToken(t, w, "9007199254740990")
			lab.Elapse(time.Minute)
		})
		check(name+" taken over", l, func(t *testing.T, w *lab.World, c *leasehold.Client, _ *leasehold.Lock) {
			setToken(t, w, "9007199254740989")
			lock, err := c.Acquire(t.Context(), "job", leasehold.WithoutRenewal())
			if err != nil || lock.Token() != 9007199254740990 {
				t.Fatal(err)
			}
			lab.OK(t, lock.Renew(t.Context()))
		})
		if !l.Capabilities().KeepOnRelease {
			continue
		}
		check(name+" released", l, func(t *testing.T, w *lab.World, c *leasehold.Client, lock *leasehold.Lock) {
			w.Release(lock)
			setToken(t, w, "9007199254740990")
		})
		check(name+" granted and released", l, func(t *testing.T, w *lab.World, c *leasehold.Client, lock *leasehold.Lock) {
			w.Release(lock)
			setToken(t, w, "9007199254740989")
			w.Release(w.Acquire(c, "job"))
		})
		check(name+" handed over", l, func(t *testing.T, w *lab.World, c *leasehold.Client, lock *leasehold.Lock) {
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
