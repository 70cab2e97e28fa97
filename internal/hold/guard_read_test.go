package hold_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestReadIsRepeatedUntilItIsAnswered(t *testing.T) {
	lab.Each(t, map[string]lab.Fault{
		"conflict":  lab.Answer(func() *http.Response { return lab.Cancellation("None", "TransactionConflict") }),
		"throttled": lab.Refused("ThrottlingException"),
		"reset":     lab.LoseReply,
		"silence":   lab.Cut,
	}, func(t *testing.T, w *lab.World, fault lab.Fault) {
		_, wire, lock := w.Work().Holding(lab.Config())
		wire.SetFault(lab.Once(lab.Call.Reads, fault))
		if items, err := lock.Read(t.Context(), []types.TransactGetItem{lab.Get("a")}); err != nil || len(items) != 1 {
			t.Errorf("read %v: %v", items, err)
		}
		wire.SetFault(lab.On(lab.Call.Reads, lab.Refused("AccessDeniedException")))
		var op *leasehold.OpError
		if _, err := lock.Read(t.Context(), nil); !errors.As(err, &op) || op.Op != "read" {
			t.Errorf("refused: %v", err)
		}
		w.Release(lock)
	})
}

func TestGuardedReadEndsWhenContextOrTrustEnds(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, wire, lock := w.Work().Holding(lab.Config())
		wire.SetFault(lab.Cut)
		ctx := w.Within(time.Second)
		began := time.Now()
		if _, err := lock.Read(ctx, nil); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if _, err := lock.Read(t.Context(), nil); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("read: %v", err)
		}
		if took := time.Since(began); took < 18*time.Second || took > 22*time.Second {
			t.Errorf("gave up after %v", took)
		}
	})
}

func TestInvalidReadIsRejectedBeforeAnyRequest(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, wire, lock := w.Work().Holding(lab.Config())
		wire.Sent()
		hundred := make([]types.TransactGetItem, 100)
		for i := range hundred {
			hundred[i] = lab.Get("a")
		}
		for name, gets := range map[string][]types.TransactGetItem{
			"a hundred items": hundred,
			"nothing to get":  {{}},
			"the own record":  {{Get: &types.Get{TableName: aws.String("locks"), Key: lab.Key("job")}}},
		} {
			if _, err := lock.Read(t.Context(), gets); err == nil || lock.Err() != nil {
				t.Errorf("%s: %v, lock: %v", name, err, lock.Err())
			}
		}
		if _, err := lock.Read(w.Ended(), nil); !errors.Is(err, context.Canceled) {
			t.Errorf("with an ended context: %v", err)
		}
		if sent := wire.Sent(); len(sent) != 0 {
			t.Errorf("sent %v", sent)
		}
		w.Release(lock)
	})
}

func TestReadErrorStatesHowManyItemsAreAllowed(t *testing.T) {
	type row struct {
		cfg  leasehold.Config
		said string
	}
	lab.Each(t, map[string]row{
		"own lease":    {lab.Config(), "at most 99 beside the lock's record: "},
		"shared lease": {lab.SharedConfig(), "at most 98 beside the lock's record and the row of its shared lease: "},
	}, func(t *testing.T, w *lab.World, tc row) {
		c, _, lock := w.Holding(tc.cfg)
		if _, err := lock.Read(t.Context(), make([]types.TransactGetItem, 100)); err == nil || !strings.Contains(err.Error(), tc.said) {
			t.Errorf("error %v", err)
		}
		w.Release(lock)
		_ = c.Close(t.Context())
	})
}
