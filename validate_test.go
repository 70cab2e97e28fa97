package leasehold_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
)

func TestBadInputIsAnErrorBeforeAnythingIsSent(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		acquire := func(key string, opts ...leasehold.AcquireOption) func() error {
			return func() error {
				lock, err := c.Acquire(t.Context(), key, opts...)
				if lock != nil {
					_ = lock.Release(t.Context())
				}
				return err
			}
		}
		list := func(opts ...leasehold.ListOption) func() error {
			return func() error {
				for _, err := range c.List(t.Context(), opts...) {
					return err
				}
				return nil
			}
		}
		for name, do := range map[string]func() error{
			"no key":               acquire(""),
			"a key too long":       acquire(strings.Repeat("k", 2049)),
			"a key not UTF-8":      acquire("a\xff"),
			"a sort key":           acquire("a", leasehold.WithSortKey("b")),
			"a lease too short":    acquire("a", leasehold.WithLease(time.Second-1)),
			"a negative lease":     acquire("a", leasehold.WithLease(-time.Second)),
			"a reserved attribute": acquire("a", leasehold.WithAttributes(map[string]types.AttributeValue{"isReleased": lab.Str("1")})),
			"a nameless attribute": acquire("a", leasehold.WithAttributes(map[string]types.AttributeValue{"": lab.Str("1")})),
			"too much data":        acquire("a", leasehold.WithData(make([]byte, 400<<10))),
			"a warning of nothing": acquire("a", leasehold.WithExpiryWarning(time.Second, nil)),
			"a warning too late":   acquire("a", leasehold.WithExpiryWarning(-time.Second, func(*leasehold.Lock) {})),
			"no function":          func() error { return c.Do(t.Context(), "a", nil) },
			"get no key":           func() error { _, err := c.Get(t.Context(), ""); return err },
			"break nothing":        func() error { return c.Break(t.Context(), leasehold.Record{Key: leasehold.Key{Partition: "a"}}) },
			"list no partition":    list(leasehold.ListPartition("")),
			"list by two":          list(leasehold.ListPartition("a"), leasehold.ListPrefix("b")),
			"list after no key":    list(leasehold.ListAfter(leasehold.Key{})),
		} {
			err := do()
			synctest.Wait()
			if n := len(wire.Sent()); err == nil || n != 0 {
				t.Errorf("%s: error %v, %d requests", name, err, n)
			}
		}
	})
}

func TestBadInputIsRefusedBeforeAnythingIsSent(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		lock := w.Acquire(c, "held")
		defer w.Release(lock)
		wire.Sent()
		attribute := func(name string) leasehold.RecordOption {
			return leasehold.WithAttributes(map[string]types.AttributeValue{name: lab.Str("x")})
		}
		acquire := func(key string, opts ...leasehold.AcquireOption) func() error {
			return func() error { _, err := c.Acquire(t.Context(), key, opts...); return err }
		}
		for name, try := range map[string]func() error{
			"an empty key":                   acquire(""),
			"a key too long":                 acquire(strings.Repeat("a", 2049)),
			"a sort key without a sort key":  acquire("job", leasehold.WithSortKey("x")),
			"a lease too short":              acquire("job", leasehold.WithLease(time.Millisecond)),
			"data too large":                 acquire("job", leasehold.WithData(make([]byte, 400<<10))),
			"initial data too large":         acquire("job", leasehold.WithInitialData(make([]byte, 400<<10))),
			"attributes too large":           acquire("job", leasehold.WithAttributes(map[string]types.AttributeValue{"a": lab.Str(strings.Repeat("a", 400<<10))})),
			"a reserved attribute":           acquire("job", attribute("isReleased")), // others: a second holder gets in
			"the key as an attribute":        acquire("job", attribute("key")),
			"an attribute without a name":    acquire("job", attribute("")),
			"a reserved attribute, renewing": func() error { return lock.Renew(t.Context(), attribute("fencingToken")) },
			"a lease too short, renewing":    func() error { return lock.Renew(t.Context(), leasehold.WithLease(1)) },
			"a reserved attribute, releasing": func() error {
				return lock.Release(t.Context(), attribute("waiters"))
			},
			"an empty key, getting":    func() error { _, err := c.Get(t.Context(), ""); return err },
			"an empty record to break": func() error { return c.Break(t.Context(), leasehold.Record{Key: leasehold.Key{Partition: "a"}}) },
			"an observation of nothing": func() error {
				return c.ImportObservations(0, leasehold.Observation{Key: leasehold.Key{Partition: "a"}})
			},
			"a negative skew": func() error { return c.ImportObservations(-1) },
		} {
			if err := try(); err == nil {
				t.Errorf("%s: no error", name)
			} else if !strings.HasPrefix(err.Error(), "leasehold: ") {
				t.Errorf("%s: message %q", name, err)
			}
			if n := len(wire.Sent()); n != 0 {
				t.Errorf("%s: %d requests", name, n)
			}
		}
		if lock.Err() != nil {
			t.Errorf("bad input ended the lock: %v", lock.Err())
		}
	})
}

func TestWhatIsTooLargeIsCountedWithItsKey(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.ConfigOf("locks", layout.Native{SortKey: "shard"}))
		bytes := func(key, sort, attribute string, data int) int {
			return refusedBytes(t, c, key, leasehold.WithSortKey(sort), leasehold.WithData(make([]byte, data)),
				leasehold.WithAttributes(map[string]types.AttributeValue{attribute: lab.Str("value")}))
		}
		n := bytes("k", "s", "a", 400<<10)
		if n <= 400<<10 {
			t.Errorf("%d bytes are too many, with %d of data", n, 400<<10)
		}
		if more := bytes("k/23", "s/345", "a/3", 400<<10+5) - n; more != 3+4+2+5 {
			t.Errorf("fourteen bytes more are counted as %d", more)
		}
	})
}

// refusedBytes is the size that the error of a record that is too large names.
func refusedBytes(t *testing.T, c *leasehold.Client, key string, opts ...leasehold.AcquireOption) (n int) {
	t.Helper()
	_, err := c.Acquire(t.Context(), key, opts...)
	_, after, _ := strings.Cut(fmt.Sprint(err), "the record would have about ")
	if _, err := fmt.Sscanf(after, "%d bytes", &n); err != nil {
		t.Errorf("no size in: %v", err)
	}
	return n
}
