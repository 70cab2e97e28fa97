package breaking_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
)

// tellsOfABreak reports whether the request writes a break notice to the row of a session.
func tellsOfABreak(c lab.Call) bool {
	return c.Op == "UpdateItem" && bytes.Contains(c.Body, []byte("leasehold/session/")) && !c.Sets("recordVersionNumber")
}

func TestBreakReportsThatHolderCouldNotBeNotified(t *testing.T) {
	denied := lab.On(tellsOfABreak, lab.Refused("AccessDeniedException"))
	silent := lab.On(tellsOfABreak, lab.Cut)
	type row struct {
		fault lab.Fault
		row   map[string]types.AttributeValue
		want  error
	}
	lab.Each(t, map[string]row{
		"denied":              {fault: denied, want: leasehold.ErrHolderUntold},
		"no reply":            {fault: silent, want: leasehold.ErrHolderUntold},
		"an older client":     {row: map[string]types.AttributeValue{"brokenGrants": nil}, want: leasehold.ErrHolderUntold},
		"a dead session":      {row: map[string]types.AttributeValue{"dead": lab.Str("1")}},
		"throttled, once":     {fault: lab.Once(tellsOfABreak, lab.Refused("ThrottlingException"))},
		"a lost reply, once":  {fault: lab.Once(tellsOfABreak, lab.LoseReply)},
		"a lost request once": {fault: lab.Once(tellsOfABreak, lab.Cut)},
		"an older client, whose row is not shown": {
			fault: lab.On(tellsOfABreak, lab.ShowNothing), row: map[string]types.AttributeValue{"brokenGrants": nil}, want: leasehold.ErrHolderUntold,
		},
	}, func(t *testing.T, w *lab.World, tc row) {
		c, _, lock := w.Holding(lab.SharedConfig())
		op, wire := w.Client(lab.Config())
		wire.SetFault(tc.fault)
		if tc.row != nil {
			w.Update(w.Sessions()[0], tc.row)
		}
		began := time.Now()
		err := op.Break(w.Within(10*time.Second), lock.Record(), leasehold.BreakOptions{})
		lab.WantErr(t, "break", err, tc.want)
		lab.WantTook(t, "returned after", began, 0, 10*time.Second)
		if tc.want != nil && (!strings.Contains(err.Error(), "job in table locks") || !strings.Contains(err.Error(), "twenty minutes")) {
			t.Errorf("it does not say what comes of it: %v", err)
		}
		w.WantReleased("job")
		lab.Elapse(20 * time.Minute)
		lab.WantErr(t, "holder after twenty minutes", lock.Err(), leasehold.ErrLost)
		_ = c.Close(t.Context())
		_ = op.Close(t.Context())
	})
}

func TestUnansweredBreakNotifiesHolder(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _, lock := w.Holding(lab.SharedConfig())
		op, wire := w.Client(lab.Config())
		wire.SetFault(lab.Once(lab.Call.Releases, lab.Unheard))
		lab.WantErr(t, "without a reply", op.Break(w.Within(time.Second), lock.Record(), leasehold.BreakOptions{}), leasehold.ErrUnknownOutcome)
		lab.Elapse(10 * time.Second)
		lab.WantErr(t, "its holder", lock.Err(), leasehold.ErrLost)
		_ = c.Close(t.Context())
	})
}

func TestThrottledBreakNoticeIsReported(t *testing.T) {
	type row struct {
		fault lab.Fault
		told  int
	}
	lab.Each(t, map[string]row{
		"throttled":    {lab.Refused("ThrottlingException"), 1},
		"a lost reply": {lab.LoseReply, 0},
	}, func(t *testing.T, w *lab.World, tc row) {
		c, _, lock := w.Holding(lab.SharedConfig())
		cfg := lab.Config()
		throttled := lab.Events(&cfg, leasehold.EventThrottled)
		op, wire := w.Client(cfg)
		wire.SetFault(lab.Once(tellsOfABreak, tc.fault))
		w.Break(op, lock, "")
		told := throttled()
		lab.Want(t, "breaks read", len(told), tc.told)
		for _, e := range told {
			lab.Want(t, "key", e.Key, lock.Key())
			lab.Want(t, "token", e.Token, lock.Token())
		}
		_ = c.Close(t.Context())
	})
}

// While the clients of a table migrate from one layout to another, both layouts are in use.
// A client of one layout may then break a lock that a client of the other layout holds.
func TestBreakByClientOfLayoutWithoutSessionsFreesKey(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _, lock := w.Holding(lab.SharedConfig())
		op, _ := w.Client(lab.ConfigOf("locks", layout.AWSLabs{}))
		w.Break(op, lock, "")
		w.WantReleased("job")
		_ = c.Close(t.Context())
	})
}
