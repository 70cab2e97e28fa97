package leasehold_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
)

func TestATransactionWhoseReplyIsLostIsRecognised(t *testing.T) {
	for name, fault := range map[string]func(context.Context, call, func() (*http.Response, error)) (*http.Response, error){
		"reset after the write": loseReply,
		"a server error after the write": func(_ context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
			_, _ = next()
			return refusal(500, "InternalServerError"), nil
		},
		"delivered twice, the second reply arrives": func(_ context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
			_, _ = next()
			return next()
		},
		"a copy is under way": func(_ context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
			_, _ = next()
			return refusal(400, "TransactionInProgressException"), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				c, wire := w.client(config())
				wire.setFault(once(call.grants, fault))
				began := time.Now()
				g := w.acquireAll(c, leasehold.Keys("a", "b"))
				if took := time.Since(began); took > time.Second {
					t.Errorf("took %v", took)
				}
				for _, l := range g.Locks() {
					if l.Record().Version != textOf(w.item(l.Key().Partition), "recordVersionNumber") {
						t.Errorf("%v: the holder does not hold what the record shows", l.Key())
					}
					if dead, took := l.TookOver(); took {
						t.Errorf("its own attempt is reported as a dead holder: %+v", dead)
					}
				}
				wire.setFault(once(call.releases, fault))
				if err := g.Release(t.Context()); err != nil {
					t.Error(err)
				}
				if held := w.held(leasehold.Keys("a", "b")); len(held) > 0 {
					t.Errorf("released, and still held: %v", held)
				}
			})
		})
	}
}

func TestTrustInSeveralKeysCountsFromBeforeTheirTransactionWasSent(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		wire.setFault(once(call.grants, slow(2*time.Second)))
		began := time.Now()
		g := w.acquireAll(c, leasehold.Keys("a", "b"), leasehold.WithoutRenewal())
		for _, l := range g.Locks() {
			if trusted := l.TrustedUntil().Sub(began); trusted > 18*time.Second || trusted < 17*time.Second {
				t.Errorf("%v: trusted for %v after the sending", l.Key(), trusted)
			}
		}
		if err := g.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestATransactionThatCannotBeReadBackIsReplacedWhileHalfItsTrustIsLeft(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		until := time.Now().Add(15 * time.Second)
		wire.setFault(func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
			if c.op == "BatchGetItem" && time.Now().Before(until) {
				return nil, errReset
			}
			return next()
		})
		g := w.acquireAll(c, leasehold.Keys("a", "b"))
		n := 0
		for _, c := range wire.sent() {
			if c.grants() {
				n++
			}
		}
		if n != 2 {
			t.Errorf("%d transactions of grants", n)
		}
		for _, l := range g.Locks() {
			if left := time.Until(l.TrustedUntil()); left < 9*time.Second {
				t.Errorf("%v: trusted for %v", l.Key(), left)
			}
		}
		if err := g.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// twice is a DynamoDB that has forgotten a transaction's token by the time the
// network repeats it.
type twice struct {
	leasehold.DB
	tokens []string
}

func (d *twice) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	d.tokens = append(d.tokens, aws.ToString(in.ClientRequestToken))
	forgotten := *in
	forgotten.ClientRequestToken = nil
	_, _ = d.DB.TransactWriteItems(ctx, &forgotten, opts...)
	return d.DB.TransactWriteItems(ctx, in, opts...)
}

func TestATransactionThatIsAppliedTwiceIsOneGrant(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		db := &twice{DB: w.db}
		c, err := leasehold.New(db, config())
		if err != nil {
			t.Fatal(err)
		}
		leasehold.VirtualClocks(c)
		for range 2 {
			began := time.Now()
			g := w.acquireAll(c, leasehold.Keys("a", "b"))
			if took := time.Since(began); took > 0 {
				t.Errorf("took %v", took)
			}
			if err := g.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if len(db.tokens) != 4 { // no attempt was repeated
			t.Errorf("%d transactions", len(db.tokens))
		}
		for i, token := range db.tokens {
			if token == "" || slices.Contains(db.tokens[:i], token) {
				t.Errorf("tokens %q: each attempt has one of its own", db.tokens)
			}
		}
	})
}

func TestKeysThatAreBrokenBeforeTheyAreReadBackAreAskedForAgain(t *testing.T) {
	for name, interfere := range map[string]func(w *world){
		"deleted": func(w *world) { w.delete("a") },
		"broken": func(w *world) {
			w.update("b", map[string]types.AttributeValue{"isReleased": str("1"), "recordVersionNumber": str("another")})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				c, wire := w.client(config())
				wire.setFault(once(func(c call) bool { return c.op == "BatchGetItem" },
					func(_ context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
						interfere(w)
						return next()
					}))
				began := time.Now()
				g := w.acquireAll(c, leasehold.Keys("a", "b", "c"))
				if took := time.Since(began); took > time.Second {
					t.Errorf("took %v", took)
				}
				for _, l := range g.Locks() {
					item := w.item(l.Key().Partition)
					if l.Record().Version != textOf(item, "recordVersionNumber") || item["isReleased"] != nil {
						t.Errorf("%v: the holder does not hold what the record shows: %v", l.Key(), item)
					}
				}
				if err := g.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestAKeyLostWhileTheOthersAreSoughtIsTakenAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, _ := w.client(config())
		b, wire := w.client(config())
		other := w.acquire(a, "b")
		wire.setFault(func(_ context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
			if c.op == "TransactWriteItems" && c.grants() {
				return refusal(400, "AccessDeniedException"), nil
			}
			return next()
		})
		granted := make(chan *leasehold.Group)
		go func() { granted <- w.acquireAll(b, leasehold.Keys("a", "b")) }()
		elapse(time.Second)
		w.delete("a")
		elapse(20 * time.Second) // noticed
		w.release(other)
		g := <-granted
		if err := g.Err(); err != nil {
			t.Error(err)
		}
		if held := w.held(leasehold.Keys("a", "b")); len(held) != 2 {
			t.Errorf("held %v", held)
		}
		if err := g.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestNothingStaysBelievedWhenAWaitInOrderEndsInASilence(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.client(config())
		wire.setFault(func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
			if c.op == "TransactWriteItems" && c.grants() {
				return refusal(400, "AccessDeniedException"), nil
			}
			if c.grants() && bytes.Contains(c.body, []byte(`"b"`)) {
				return hang(ctx)
			}
			return next()
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.AcquireAll(ctx, leasehold.Keys("a", "b")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if held := c.Held(); len(held) > 0 {
			t.Errorf("still holds %v", held[0].Key())
		}
		if held := w.held(leasehold.Keys("a")); len(held) > 0 {
			t.Errorf("left held: %v", held)
		}
		wire.setFault(nil)
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
