package leasehold_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/semaphore"
)

func TestAnOddKeyIsQuotedSoThatAnErrorIsOneLine(t *testing.T) {
	for key, want := range map[leasehold.Key]string{
		{Partition: "customer/42"}:          "customer/42",
		{Partition: "ключ☂"}:                "ключ☂",
		{Partition: "a", Sort: "b"}:         "a (b)",
		{}:                                  `""`,
		{Partition: "nightly report"}:       `"nightly report"`,
		{Partition: "a\nlevel=ERROR"}:       `"a\nlevel=ERROR"`,
		{Partition: `a"b`}:                  `"a\"b"`,
		{Partition: "a'b"}:                  `"a'b"`,
		{Partition: "\x1b[31m", Sort: "\t"}: `"\x1b[31m" ("\t")`,
		{Partition: "\xff"}:                 `"\xff"`,
	} {
		if got := key.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		if _, err := c.Acquire(t.Context(), ""); err == nil || !strings.Contains(err.Error(), `acquire "" in table locks`) {
			t.Errorf("an empty key: %v", err)
		}
		wire.SetFault(lab.Cut)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := c.Acquire(ctx, "a\nb"); err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), `"a\nb"`) {
			t.Errorf("a key of two lines: %v", err)
		}
		_ = c.Close(t.Context())
	})
}

func TestARecordOfAnotherKindIsNothingToDelete(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		p := newReadWriter(w, "set")
		read := p.read()
		plain := w.Acquire(p.c, "plain")
		slots, err := semaphore.New(p.c, "slots", 2)
		if err != nil {
			t.Fatal(err)
		}
		slot, err := slots.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tries := map[string]func() error{
			"held as a read/write lock": func() error { _, err := p.c.TryAcquire(t.Context(), "set"); return err },
			"held as a plain lock":      func() error { _, err := newReadWriter(w, "plain").l.AcquireRead(t.Context()); return err },
			"held as a plain lock: ":    func() error { _, err := newReadWriter(w, "plain").l.AcquireWrite(t.Context()); return err },
			"the key has permits":       func() error { _, err := p.c.Acquire(t.Context(), "slots"); return err },
		}
		tries["held as a plain lock: acquire"] = func() error {
			s, err := semaphore.New(p.c, "plain", 2)
			if err == nil {
				_, err = s.Acquire(t.Context())
			}
			return err
		}
		for want, try := range tries {
			err := try()
			if !errors.Is(err, leasehold.ErrBadRecord) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "delete") || !strings.Contains(err.Error(), "in table locks") {
				t.Errorf("want %q: %v", want, err)
			}
		}
		for _, lock := range []*leasehold.Lock{read, plain, slot} {
			w.Release(lock)
		}
		if _, err := newReadWriter(w, "plain").l.AcquireRead(t.Context()); !errors.Is(err, leasehold.ErrBadRecord) || strings.Contains(err.Error(), "is held") || !strings.Contains(err.Error(), "plain lock") {
			t.Errorf("a plain lock that is free: %v", err)
		}
	})
}

func TestTheHundredAndFirstReaderHearsOfTheLimit(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		p := newReadWriter(w, "set")
		for range 100 {
			p.read(leasehold.WithoutRenewal())
		}
		late := newReadWriter(w, "set")
		_, tried := late.l.AcquireRead(t.Context(), leasehold.NoWait())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, waited := late.l.AcquireRead(ctx)
		for _, err := range []error{tried, waited} {
			if !errors.Is(err, leasehold.ErrHeld) || !strings.Contains(err.Error(), "99 other readers") {
				t.Errorf("error %v", err)
			}
		}
		if _, err := late.l.AcquireWrite(t.Context(), leasehold.NoWait()); !errors.Is(err, leasehold.ErrHeld) || strings.Contains(err.Error(), "other readers") {
			t.Errorf("a writer: %v", err)
		}
	})
}
