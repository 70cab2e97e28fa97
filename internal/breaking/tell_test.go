package breaking_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// tellsOfABreak reports whether the request notifies a session of a broken grant.
func tellsOfABreak(c lab.Call) bool {
	return c.Op == "UpdateItem" && bytes.Contains(c.Body, []byte("leasehold/session/")) && !c.Sets("recordVersionNumber")
}

func TestBreakReportsThatHolderCouldNotBeNotified(t *testing.T) {
	denied := lab.Respond(tellsOfABreak, func() *http.Response { return lab.Refusal(400, "AccessDeniedException") })
	silent := func(r *lab.Request) (*http.Response, error) {
		if tellsOfABreak(r.Call) {
			return lab.Cut(r)
		}
		return r.Send()
	}
	for name, tc := range map[string]struct {
		fault lab.Fault
		row   map[string]types.AttributeValue
		want  error
	}{
		"denied":              {fault: denied, want: leasehold.ErrHolderUntold},
		"no reply":            {fault: silent, want: leasehold.ErrHolderUntold},
		"an older client":     {row: map[string]types.AttributeValue{"brokenGrants": nil}, want: leasehold.ErrHolderUntold},
		"a dead session":      {row: map[string]types.AttributeValue{"dead": lab.Str("1")}},
		"throttled, once":     {fault: lab.Once(tellsOfABreak, lab.Answer(func() *http.Response { return lab.Refusal(400, "ThrottlingException") }))},
		"a lost reply, once":  {fault: lab.Once(tellsOfABreak, lab.LoseReply)},
		"a lost request once": {fault: lab.Once(tellsOfABreak, lab.Cut)},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, _ := w.Client(lab.SharedConfig())
				lock := w.Acquire(c, "job")
				op, wire := w.Client(lab.Config())
				wire.SetFault(tc.fault)
				if tc.row != nil {
					w.Update(w.Sessions()[0], tc.row)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				began := time.Now()
				err := op.Break(ctx, lock.Record(), leasehold.BreakOptions{})
				if took := time.Since(began); !errors.Is(err, tc.want) || took > 10*time.Second {
					t.Errorf("after %v: %v", took, err)
				}
				if tc.want != nil && (!strings.Contains(err.Error(), "job in table locks") || !strings.Contains(err.Error(), "twenty minutes")) {
					t.Errorf("it does not say what comes of it: %v", err)
				}
				if !w.IsReleased("job") {
					t.Error("not broken")
				}
				lab.Elapse(20 * time.Minute)
				if !errors.Is(lock.Err(), leasehold.ErrLost) {
					t.Errorf("its holder after twenty minutes: %v", lock.Err())
				}
				_ = c.Close(t.Context())
				_ = op.Close(t.Context())
			})
		})
	}
}

func TestUnansweredBreakNotifiesHolder(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.SharedConfig())
		lock := w.Acquire(c, "job")
		op, wire := w.Client(lab.Config())
		wire.SetFault(lab.Once(lab.Call.Releases, func(r *lab.Request) (*http.Response, error) {
			_, _ = r.Send()
			return lab.Cut(r)
		}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := op.Break(ctx, lock.Record(), leasehold.BreakOptions{}); !errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Fatalf("without a reply: %v", err)
		}
		lab.Elapse(10 * time.Second)
		if !errors.Is(lock.Err(), leasehold.ErrLost) {
			t.Errorf("its holder: %v", lock.Err())
		}
		_ = c.Close(t.Context())
	})
}
