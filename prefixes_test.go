package leasehold_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/rwlock"
	"github.com/leasehold-go/leasehold/semaphore"
	"github.com/leasehold-go/leasehold/table"
)

// ofBilling is the config of a client whose policy has one prefix.
func ofBilling() leasehold.Config {
	cfg := lab.Config()
	cfg.Prefixes = []string{"billing/"}
	return cfg
}

func TestAKeyOutsideOfThePrefixesIsRefusedByAnErrorThatNamesThem(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := ofBilling()
		cfg.Prefixes = append(cfg.Prefixes, "import/")
		c, wire := w.Client(cfg)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // of who would wait
		defer cancel()
		list := func() (err error) {
			for _, e := range c.List(ctx, leasehold.ListPartition("payroll/7")) {
				err = e
			}
			return err
		}
		watch := func() (err error) {
			for _, e := range c.Watch(ctx, "payroll/7") {
				return e
			}
			return nil
		}
		key := "payroll/7"
		calls := map[string]func() error{
			"Acquire":    func() error { _, err := c.Acquire(ctx, key); return err },
			"TryAcquire": func() error { _, err := c.TryAcquire(ctx, key); return err },
			"Do":         func() error { return c.Do(ctx, key, func(context.Context, *leasehold.Lock) error { return nil }) },
			"AcquireAll": func() error { _, err := c.AcquireAll(ctx, leasehold.Keys("billing/7", key)); return err },
			"AcquireAny": func() error { _, err := c.AcquireAny(ctx, leasehold.Keys("billing/7", key)); return err },
			"Get":        func() error { _, err := c.Get(ctx, key); return err },
			"Break":      func() error { return c.Break(ctx, leasehold.Record{Key: leasehold.Key{Partition: key}}) },
			"List":       list,
			"Watch":      watch,
			"semaphore":  func() error { _, err := semaphore.New(c, key, 2); return err },
			"rwlock":     func() error { _, err := rwlock.New(c, key); return err },
			"election":   func() error { _, err := election.New(c, key); return err },
		}
		for name, call := range calls {
			err := call()
			var refused *leasehold.PrefixError
			if !errors.As(err, &refused) || !errors.Is(err, leasehold.ErrPrefix) {
				t.Errorf("%s: error %v", name, err)
				continue
			}
			if refused.Key.Partition != key || refused.Table != "locks" || !slices.Equal(refused.Prefixes, cfg.Prefixes) ||
				!strings.HasSuffix(err.Error(), "those begin with billing/ or import/") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if sent := wire.Sent(); len(sent) > 0 {
			t.Errorf("sent %v", lab.Ops(sent))
		}
	})
}

func TestKeysUnderAPrefixAreAsEver(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := ofBilling()
		c, _ := w.Client(cfg)
		cfg.Prefixes[0] = "payroll/" // is the caller's own
		w.Release(w.Acquire(c, "billing/7"))
		s, err := semaphore.New(c, "billing/gpu", 2)
		if err != nil {
			t.Fatal(err)
		}
		permit, err := s.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.Release(permit)
	})
}

func TestASharedLeaseNeedsItsRowsAmongThePrefixes(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg := ofBilling()
		cfg.SharedLease = true
		if _, err := leasehold.New(w.DB, cfg); err == nil || !strings.Contains(err.Error(), "add table.SharedLeases") {
			t.Errorf("without them: %v", err)
		}
		cfg.Prefixes = append(cfg.Prefixes, table.SharedLeases)
		c, _ := w.Client(cfg)
		lock := w.Acquire(c, "billing/7")
		w.Release(lock)
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAnEmptyPrefixIsAMistake(t *testing.T) {
	cfg := ofBilling()
	cfg.Prefixes = append(cfg.Prefixes, "")
	w := lab.New(t)
	if _, err := leasehold.New(w.DB, cfg); err == nil || !strings.Contains(err.Error(), "Prefixes has an empty one") {
		t.Errorf("error %v", err)
	}
}
