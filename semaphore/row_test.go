package semaphore_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestAWaiterAsksForNothingTwiceWithoutAResize(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		a, _ := w.Client(lab.Config())
		b, wire := w.Client(lab.Config())
		takePermits(w, newSemaphore(w, a, "gpu", 3), 3)
		waiter := newSemaphore(w, b, "gpu", 3)
		first := mustWait(w, waiter)
		for range 9 {
			mustWait(w, waiter)
		}
		wire.Sent()
		const wait = 5 * time.Minute
		lab.Elapse(wait)
		rows, others := 0, 0
		for _, c := range wire.Sent() {
			switch {
			case touches(c):
				rows++
			case c.Op == "BatchGetItem":
				others++
			default:
				t.Fatalf("a waiter sends %s", c.Op)
			}
		}
		// Ten waiters share what one of them reads.
		if rows < int(wait/(15*time.Second)) || rows > int(wait/(2500*time.Millisecond)) || others > 2*int(wait/(500*time.Millisecond)) {
			t.Errorf("%d reads of the row and %d of the permits in %v", rows, others, wait)
		}
		closed(t, a, b)
		<-first
	})
}

func TestAStoredNumberWhoseReplyIsLostIsOurs(t *testing.T) {
	row := func(c lab.Call) bool { return c.Op == "UpdateItem" && touches(c) }
	t.Run("stored first", func(t *testing.T) {
		lab.InBubble(t, func(t *testing.T, w *lab.World) {
			a, wire := w.Client(lab.Config())
			b, _ := w.Client(lab.Config())
			wire.SetFault(lab.Once(row, func(r *lab.Request) (*http.Response, error) {
				_, _ = r.Send()
				resizeTo(w, newSemaphore(w, b, "gpu", 9), 5) // another has changed it by the time we ask again
				return nil, lab.ErrReset
			}))
			ours := newSemaphore(w, a, "gpu", 3)
			takePermits(w, ours, 5)
			_ = a.Close(t.Context())
		})
	})
	t.Run("by somebody else", func(t *testing.T) {
		lab.InBubble(t, func(t *testing.T, w *lab.World) {
			a, wire := w.Client(lab.Config())
			b, _ := w.Client(lab.Config())
			wire.SetFault(lab.Once(row, func(r *lab.Request) (*http.Response, error) {
				resizeTo(w, newSemaphore(w, b, "gpu", 9), 5)
				return r.Send()
			}))
			if _, err := newSemaphore(w, a, "gpu", 3).Acquire(t.Context()); !errors.Is(err, leasehold.ErrPermits) {
				t.Errorf("error %v", err)
			}
		})
	})
	t.Run("resized", func(t *testing.T) {
		lab.InBubble(t, func(t *testing.T, w *lab.World) {
			c, wire := w.Client(lab.Config())
			s := newSemaphore(w, c, "gpu", 3)
			w.Release(takePermit(w, s))
			wire.Sent()
			wire.SetFault(lab.Once(row, lab.LoseReply))
			resizeTo(w, s, 7)
			version := lab.Text(w.Item("gpu"), "recordVersionNumber")
			if got := strings.Join(lab.Ops(wire.Sent()), " "); got != "GetItem UpdateItem UpdateItem" {
				t.Errorf("requests %s", got)
			}
			resizeTo(w, s, 7) // nothing to do
			if now := lab.Text(w.Item("gpu"), "recordVersionNumber"); now != version || lab.Number(w.Item("gpu"), "permits") != "7" {
				t.Errorf("stored again: %v", w.Item("gpu"))
			}
		})
	})
	t.Run("resized, refused after no answer", func(t *testing.T) {
		lab.InBubble(t, func(t *testing.T, w *lab.World) {
			c, wire := w.Client(lab.Config())
			s := newSemaphore(w, c, "gpu", 3)
			resizeTo(w, s, 3)
			var lost bool
			wire.SetFault(func(r *lab.Request) (*http.Response, error) {
				switch {
				case !row(r.Call):
					return r.Send()
				case !lost:
					lost = true
					return lab.LoseReply(r)
				}
				return lab.Refusal(400, "AccessDeniedException"), nil
			})
			if err := s.Resize(t.Context(), 7); !errors.Is(err, leasehold.ErrUnknownOutcome) {
				t.Errorf("error %v", err)
			}
		})
	})
	t.Run("resized without an answer", func(t *testing.T) {
		lab.InBubble(t, func(t *testing.T, w *lab.World) {
			c, wire := w.Client(lab.Config())
			s := newSemaphore(w, c, "gpu", 3)
			w.Release(takePermit(w, s))
			wire.SetFault(func(r *lab.Request) (*http.Response, error) {
				if row(r.Call) {
					return lab.Cut(r)
				}
				return r.Send()
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := s.Resize(ctx, 7); !errors.Is(err, leasehold.ErrUnknownOutcome) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v", err)
			}
			closed(t, c) // waits for the last attempt
		})
	})
}

func TestAnAcquireThatMayHaveStoredTheNumberIsOfNoUnknownOutcome(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		var lost bool
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			switch {
			case r.Op != "UpdateItem":
				return r.Send()
			case !lost:
				lost = true
				return lab.LoseReply(r)
			}
			return lab.Refusal(400, "AccessDeniedException"), nil
		})
		_, err := newSemaphore(w, c, "gpu", 3).Acquire(t.Context())
		if op := (*leasehold.OpError)(nil); !errors.As(err, &op) || op.Op != "acquire" || errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("error %v", err) // no permit was asked for
		}
		if w.Item("gpu") == nil || w.Item("gpu/0") != nil {
			t.Errorf("stored %v", w.Scan())
		}
		closed(t, c)
	})
}

// What leasehold forget removes, another may store or lock anew. Whoever counted before
// follows the new number, or gives its permit back: it never goes by its own.
func TestWhoCountedAForgottenSemaphoreGoesByWhatIsThereNow(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		other, _ := w.Client(lab.Config())
		s := newSemaphore(w, c, "gpu", 3)
		forget := func() {
			for _, key := range []string{"gpu", "gpu/0", "gpu/1", "gpu/2"} {
				w.Delete(key)
			}
		}
		w.Release(takePermit(w, s))
		forget()
		one := newSemaphore(w, other, "gpu", 1)
		w.Release(takePermit(w, one))
		lock := takePermit(w, s)
		if lock.Key().Partition != "gpu/0" {
			t.Errorf("of one permit it has %v", lock.Key())
		}
		if _, err := one.TryAcquire(t.Context()); !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("a second one: %v", err)
		}
		w.Release(lock)
		forget()
		plain := w.Acquire(other, "gpu")
		if _, err := s.TryAcquire(t.Context()); !errors.Is(err, leasehold.ErrRecord) {
			t.Errorf("a permit of what is a lock: %v", err)
		}
		for _, key := range s.Keys() {
			if r, err := c.Get(t.Context(), key.Partition); err == nil && !r.Released {
				t.Errorf("%v is held", key)
			}
		}
		w.Release(plain)
	})
}

func TestARowThatWasDeletedIsStoredAgain(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		s := newSemaphore(w, c, "gpu", 3)
		w.Release(takePermit(w, s))
		resizeTo(w, s, 2)
		w.Delete("gpu")
		takePermit(w, s)
		if n := lab.Number(w.Item("gpu"), "permits"); n != "2" {
			t.Errorf("%s permits", n)
		}
		w.Delete("gpu")
		resizeTo(w, s, 4)
		if n := lab.Number(w.Item("gpu"), "permits"); n != "4" {
			t.Errorf("%s permits", n)
		}
		_ = c.Close(t.Context())
	})
}

func TestWhatIsNoSemaphoresRowIsAnErrorAndStays(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		resizeTo(w, newSemaphore(w, c, "gpu", 3), 3)
		good := w.Item("gpu")
		w.Release(w.Acquire(c, "lock"))
		rows := map[string]map[string]types.AttributeValue{"a lock": w.Item("lock"), "nothing but a key": {}}
		for name, change := range map[string]struct {
			attribute string
			value     types.AttributeValue
		}{
			"another kind":       {"kind", lab.Str("rw")},
			"no number":          {"permits", nil},
			"none":               {"permits", lab.Num("0")},
			"too many":           {"permits", lab.Num("101")},
			"no number at all":   {"permits", lab.Str("3")},
			"never so many":      {"most", lab.Num("2")},
			"no version":         {"recordVersionNumber", nil},
			"of unknown descent": {"grantId", nil},
		} {
			row := map[string]types.AttributeValue{}
			for attribute, v := range good {
				row[attribute] = v
			}
			row[change.attribute] = change.value
			if change.value == nil {
				delete(row, change.attribute)
			}
			rows[name] = row
		}
		for name, row := range rows {
			row["key"] = lab.Str("gpu")
			w.Put(row)
			s := newSemaphore(w, c, "gpu", 3)
			_, acquire := s.Acquire(t.Context())
			_, holders := s.Holders(t.Context())
			for what, err := range map[string]error{"acquire": acquire, "holders": holders, "resize": s.Resize(t.Context(), 2)} {
				var bad *leasehold.RecordError
				if !errors.As(err, &bad) || bad.Key.Partition != "gpu" || !strings.Contains(err.Error(), "choose another key") {
					t.Errorf("%s, %s: %v", name, what, err)
				}
			}
			if got := w.Item("gpu"); len(got) != len(row) {
				t.Errorf("%s: overwritten with %v", name, got)
			}
		}
	})
}

func TestTheRowOfASemaphoreIsNeverGrantedNorListed(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		w.Release(takePermit(w, newSemaphore(w, c, "gpu", 3)))
		for range 2 {
			if _, err := c.TryAcquire(t.Context(), "gpu"); !errors.Is(err, leasehold.ErrRecord) {
				t.Errorf("granted as a lock: %v", err)
			}
			lab.Elapse(200 * 24 * time.Hour) // nobody renews it
		}
		n := 0
		for r, err := range c.List(t.Context()) {
			if n++; err != nil || !strings.HasPrefix(r.Key.Partition, "gpu/") {
				t.Errorf("listed %v: %v", r.Key, err)
			}
		}
		w.Update("gpu", map[string]types.AttributeValue{"permits": nil})
		var bad *leasehold.RecordError
		for _, err := range c.List(t.Context()) {
			if err != nil && !errors.As(err, &bad) {
				t.Error(err)
			}
		}
		if n != 1 || bad == nil || bad.Key.Partition != "gpu" {
			t.Errorf("%d listed; damaged: %v", n, bad)
		}
		item := w.Item("gpu")
		for _, name := range []string{"ownerName", "leaseDuration", "recordVersionNumber"} {
			if lab.Text(item, name) == "" {
				t.Errorf("%s is missing, which a listing of the Java client needs", name)
			}
		}
		if ms, err := strconv.ParseInt(lab.Text(item, "leaseDuration"), 10, 64); err != nil || time.Duration(ms)*time.Millisecond < 50*365*24*time.Hour {
			t.Errorf("a client that does not know kinds takes it over after %d ms: %v", ms, err)
		}
		_ = c.Close(t.Context())
	})
}
