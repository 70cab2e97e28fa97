package breaking_test

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
)

func TestBreakSetsTTLOnlyIfRecordHasNoData(t *testing.T) {
	type row struct {
		before []leasehold.AcquireOption
		store  leasehold.RenewOption
		kept   bool
	}
	lab.Each(t, map[string]row{
		"data stored since": {nil, leasehold.WithData([]byte("x")), true},
		"attributes stored since": {nil,
			leasehold.WithAttributes(map[string]types.AttributeValue{"a": lab.Str("x")}), true},
		"data removed since": {[]leasehold.AcquireOption{leasehold.WithData([]byte("x"))}, leasehold.WithData(nil), false},
		"data stored before": {[]leasehold.AcquireOption{leasehold.WithData([]byte("x"))}, leasehold.WithLease(time.Minute), true},
		"never any data":     {nil, leasehold.WithLease(time.Minute), false},
	}, func(t *testing.T, w *lab.World, tc row) {
		a, _ := w.Client(lab.Config())
		op, wire := w.Client(lab.Config())
		lock := w.Acquire(a, "job", tc.before...)
		r := lab.Must(op.Get(t.Context(), "job"))(t)
		lab.OK(t, lock.Renew(t.Context(), tc.store))
		lab.OK(t, op.Break(t.Context(), r, leasehold.BreakOptions{}))
		item := w.Item("job")
		lab.Want(t, "mark of a released record", lab.Text(item, "isReleased"), "1")
		lab.Want(t, "record has no TTL", (item["expiresAt"] == nil), tc.kept)
		wire.Sent()
		lock = w.Acquire(a, "job")
		lab.WantErr(t, "break of an unchanged record", op.Break(t.Context(), lock.Record(), leasehold.BreakOptions{}), nil)
		lab.Want(t, "requests", len(wire.Sent()), 1)
	})
}

func TestBreakReturnsErrUnknownOutcomeAfterLostReplyAndNewGrant(t *testing.T) {
	lab.Each(t, map[string]func(*lab.World, *leasehold.Client){
		"granted again": func(w *lab.World, a *leasehold.Client) { w.Acquire(a, "job") },
		"granted again and released": func(w *lab.World, a *leasehold.Client) {
			w.Release(w.Acquire(a, "job"))
		},
		"granted again and deleted": func(w *lab.World, a *leasehold.Client) {
			w.Release(w.Acquire(a, "job"), leasehold.DeleteOnRelease(true))
		},
	}, func(t *testing.T, w *lab.World, after func(*lab.World, *leasehold.Client)) {
		holder, _ := w.Client(lab.Config())
		a, _ := w.Client(lab.Config())
		op, wire := w.Client(lab.Config())
		lock := w.Acquire(holder, "job", leasehold.WithoutRenewal())
		wire.SetFault(lab.Once(lab.Call.Releases, func(r *lab.Request) (*http.Response, error) {
			res, err := lab.LoseReply(r)
			after(w, a)
			return res, err
		}))
		err := op.Break(t.Context(), lock.Record(), leasehold.BreakOptions{})
		var changed *leasehold.ChangedError
		if !errors.Is(err, leasehold.ErrUnknownOutcome) || !errors.As(err, &changed) && !errors.Is(err, leasehold.ErrNotFound) {
			t.Errorf("error %v", err)
		}
		for _, c := range []*leasehold.Client{holder, a, op} {
			_ = c.Close(t.Context())
		}
	})
}

func TestBreakThatRequiresUnrenewedGrantFailsAfterRenewal(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		holder, _ := w.Client(lab.Config())
		op, wire := w.Client(lab.Config())
		lock := w.Acquire(holder, "job")
		wire.SetFault(lab.Once(lab.Call.Releases, func(*lab.Request) (*http.Response, error) {
			lab.WantErr(t, "renew", lock.Renew(t.Context()), nil)
			return nil, lab.ErrReset
		}))
		err := op.Break(t.Context(), lock.Record(), leasehold.BreakOptions{IfUnrenewed: true})
		if !errors.Is(err, leasehold.ErrChanged) || errors.Is(err, leasehold.ErrUnknownOutcome) {
			t.Errorf("error %v", err)
		}
		w.Release(lock)
	})
}

func TestBreakFailsIfLockOfOtherLibraryHasChangedOwner(t *testing.T) {
	type row struct {
		change map[string]types.AttributeValue // attributes that change, besides the version, between the read and the break
		opts   leasehold.BreakOptions
		want   error
	}
	lab.Each(t, map[string]row{
		"renewed":                  {},
		"renewed, if unrenewed":    {opts: leasehold.BreakOptions{IfUnrenewed: true}, want: leasehold.ErrChanged},
		"another owner":            {change: map[string]types.AttributeValue{"ownerName": lab.Str("python")}, want: leasehold.ErrChanged},
		"released in the meantime": {change: map[string]types.AttributeValue{"isReleased": lab.Str("1")}, want: leasehold.ErrChanged},
	}, func(t *testing.T, w *lab.World, tc row) {
		op, _ := w.Client(lab.Config())
		w.Put(map[string]types.AttributeValue{
			"key": lab.Str("job"), "ownerName": lab.Str("java"), "leaseDuration": lab.Str("20000"), "recordVersionNumber": lab.Str("v1"),
		})
		r := lab.Must(op.Get(t.Context(), "job"))(t)
		w.Update("job", map[string]types.AttributeValue{"recordVersionNumber": lab.Str("v2")})
		w.Update("job", tc.change)
		lab.WantErr(t, "break", op.Break(t.Context(), r, tc.opts), tc.want)
		if kept := lab.Text(w.Item("job"), "recordVersionNumber") == "v2"; kept != (tc.want != nil) || !kept && !w.IsReleased("job") {
			t.Errorf("record %v", w.Item("job"))
		}
	})
}

func TestBreakReturnsErrorForKeyOfSessionRow(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, _, lock := w.Holding(lab.SharedConfig())
		row := w.Sessions()[0]
		item := w.Item(row)
		op, wire := w.Client(lab.Config())
		err := op.Break(t.Context(), leasehold.Record{
			Key: leasehold.Key{Partition: row}, Owner: lab.Text(item, "ownerName"),
			Grant: lab.Text(item, "grantId"), Version: lab.Text(item, "recordVersionNumber"),
		}, leasehold.BreakOptions{})
		if err == nil || !strings.Contains(err.Error(), "the key belongs to a session") || len(wire.Sent()) != 0 || lock.Err() != nil {
			t.Errorf("%v after %d requests, the holder: %v", err, len(wire.Sent()), lock.Err())
		}
	})
}

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
		"denied":               {fault: denied, want: leasehold.ErrHolderUntold},
		"no reply":             {fault: silent, want: leasehold.ErrHolderUntold},
		"an older client":      {row: map[string]types.AttributeValue{"brokenGrants": nil}, want: leasehold.ErrHolderUntold},
		"a dead session":       {row: map[string]types.AttributeValue{"dead": lab.Str("1")}},
		"throttled, once":      {fault: lab.Once(tellsOfABreak, lab.Refused("ThrottlingException"))},
		"a lost reply, once":   {fault: lab.Once(tellsOfABreak, lab.LoseReply)},
		"a lost request, once": {fault: lab.Once(tellsOfABreak, lab.Cut)},
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
			t.Errorf("the error does not describe the consequences: %v", err)
		}
		w.WantReleased("job")
		lab.Elapse(20 * time.Minute)
		lab.WantErr(t, "holder after twenty minutes", lock.Err(), leasehold.ErrLost)
		_ = c.Close(t.Context())
		_ = op.Close(t.Context())
	})
}

func TestBreakNotifiesHolderEvenIfBreakRequestGetsNoReply(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _, lock := w.Holding(lab.SharedConfig())
		op, wire := w.Client(lab.Config())
		wire.SetFault(lab.Once(lab.Call.Releases, lab.Unheard))
		lab.WantErr(t, "break without a reply", op.Break(w.Within(time.Second), lock.Record(), leasehold.BreakOptions{}), leasehold.ErrUnknownOutcome)
		lab.Elapse(10 * time.Second)
		lab.WantErr(t, "holder", lock.Err(), leasehold.ErrLost)
		_ = c.Close(t.Context())
	})
}

func TestThrottledBreakNoticeEmitsEvent(t *testing.T) {
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
		lab.Want(t, "throttled events", len(told), tc.told)
		for _, e := range told {
			lab.Want(t, "key", e.Key, lock.Key())
			lab.Want(t, "token", e.Token, lock.Token())
		}
		_ = c.Close(t.Context())
	})
}

// While the clients of a table migrate from one layout to another, both layouts are in use.
// A client of one layout may then break a lock that a client of the other layout holds.
func TestBreakOfLockOfAnotherLayoutReportsUntoldHolder(t *testing.T) {
	type row struct {
		holder leasehold.Config
		want   error
	}
	lab.Each(t, map[string]row{
		"a lease each": {lab.Config(), nil}, "a shared lease": {lab.SharedConfig(), leasehold.ErrHolderUntold},
	}, func(t *testing.T, w *lab.World, tc row) {
		c, _, _ := w.Holding(tc.holder)
		op, _ := w.Client(lab.ConfigOf("locks", layout.AWSLabs{}))
		r := lab.Must(op.Get(t.Context(), "job"))(t)
		lab.WantErr(t, "break", op.Break(t.Context(), r, leasehold.BreakOptions{}), tc.want)
		w.WantReleased("job")
		_ = c.Close(t.Context())
	})
}
