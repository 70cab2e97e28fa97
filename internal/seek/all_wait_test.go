package seek_test

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
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/machine"
)

func TestTrustInSeveralKeysCountsFromBeforeTheirTransactionWasSent(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(lab.Once(lab.Call.Grants, lab.Slow(2*time.Second)))
		began := time.Now()
		g := w.AcquireAll(c, leasehold.Keys("a", "b"), leasehold.WithoutRenewal())
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

// twice is a DynamoDB that has forgotten a transaction's token by the time the
// network repeats it.
type twice struct {
	machine.DB
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
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		db := &twice{DB: w.Connect(nil)}
		c := w.ClientOf(db, lab.Config())
		for range 2 {
			began := time.Now()
			g := w.AcquireAll(c, leasehold.Keys("a", "b"))
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

// blind is twice with an engine whose reasons show no records.
type blind struct{ twice }

func (d *blind) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	out, err := d.twice.TransactWriteItems(ctx, in, opts...)
	if cancelled := (*types.TransactionCanceledException)(nil); errors.As(err, &cancelled) {
		for i := range cancelled.CancellationReasons {
			cancelled.CancellationReasons[i].Item = nil
		}
	}
	return out, err
}

func TestAReleaseThatIsAppliedTwiceIsOneReleaseThoughNoReasonShowsTheRecord(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c := w.ClientOf(&blind{twice{DB: w.Connect(nil)}}, lab.Config())
		g := w.AcquireAll(c, leasehold.Keys("a", "b"))
		if err := g.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestNothingStaysBelievedWhenAWaitInOrderEndsInASilence(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			if r.Op == "TransactWriteItems" && r.Grants() {
				return lab.Refusal(400, "AccessDeniedException"), nil
			}
			if r.Grants() && bytes.Contains(r.Body, []byte(`"b"`)) {
				return lab.Cut(r)
			}
			return r.Send()
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.AcquireAll(ctx, leasehold.Keys("a", "b")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if held := c.Held(); len(held) > 0 {
			t.Errorf("still holds %v", held[0].Key())
		}
		if held := w.HeldAmong(leasehold.Keys("a")); len(held) > 0 {
			t.Errorf("left held: %v", held)
		}
		wire.SetFault(nil)
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestSeveralLocksUnderASession(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, wire := w.Client(lab.SharedConfig())
		g := w.AcquireAll(holder, leasehold.Keys("x", "y"))
		if one, err := holder.AcquireAny(t.Context(), leasehold.Keys("x", "z")); err != nil || one.Key().Partition != "z" {
			t.Fatalf("any: %v, %v", one, err)
		}
		for _, key := range []string{"x", "y", "z"} {
			if lab.Text(w.Item(key), "session") == "" {
				t.Errorf("%s is under no session", key)
			}
		}
		wire.SetFault(lab.Cut)
		began := time.Now()
		heir, _ := w.Client(lab.SharedConfig())
		all := w.AcquireAll(heir, leasehold.Keys("x", "y"))
		one, err := heir.AcquireAny(t.Context(), leasehold.Keys("z"))
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 20*time.Second || took > 25*time.Second || g.Err() == nil {
			t.Errorf("taken over after %v, the dead holder: %v", took, g.Err())
		}
		w.Release(one)
		if err := all.Release(t.Context()); err != nil {
			t.Error(err)
		}
		_ = heir.Close(t.Context())
	})
}
