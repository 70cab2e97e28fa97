package breaking_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
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
		"data all the time":  {[]leasehold.AcquireOption{leasehold.WithData([]byte("x"))}, leasehold.WithLease(time.Minute), true},
		"never any":          {nil, leasehold.WithLease(time.Minute), false},
	}, func(t *testing.T, w *lab.World, tc row) {
		a, _ := w.Client(lab.Config())
		op, wire := w.Client(lab.Config())
		lock := w.Acquire(a, "job", tc.before...)
		r := lab.Must(op.Get(t.Context(), "job"))(t)
		lab.OK(t, lock.Renew(t.Context(), tc.store))
		lab.OK(t, op.Break(t.Context(), r, leasehold.BreakOptions{}))
		item := w.Item("job")
		lab.Want(t, "mark of a released record", lab.Text(item, "isReleased"), "1")
		lab.Want(t, "has no end", (item["expiresAt"] == nil), tc.kept)
		wire.Sent()
		lock = w.Acquire(a, "job")
		lab.WantErr(t, "break of an unchanged record", op.Break(t.Context(), lock.Record(), leasehold.BreakOptions{}), nil)
		lab.Want(t, "requests", len(wire.Sent()), 1)
	})
}

func TestBreakOutcomeIsUnknownIfKeyIsGrantedAfterLostReply(t *testing.T) {
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

func TestLostBreakRequestIsReportedAsNotAppliedAfterRenewal(t *testing.T) {
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

func TestBreakEndsGrantOfOtherLibraryOnlyIfOwnerIsUnchanged(t *testing.T) {
	type row struct {
		change map[string]types.AttributeValue // attributes that change between the read and the break, besides the version
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

func TestBreakRejectsSessionRow(t *testing.T) {
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
