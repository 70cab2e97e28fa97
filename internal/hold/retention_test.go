package hold_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// collect deletes the items whose TTL has passed, as DynamoDB does in the background.
func collect(w *lab.World) {
	for _, item := range w.Scan() {
		due, err := strconv.ParseInt(lab.Number(item, "expiresAt"), 10, 64)
		if err == nil && time.Unix(due, 0).Before(time.Now()) {
			w.Delete(lab.Text(item, "key"))
		}
	}
}

func TestRowOfDeadSessionIsKeptForOneWeek(t *testing.T) {
	for _, retention := range []time.Duration{time.Second, 0, 365 * 24 * time.Hour, leasehold.Forever} {
		for name, end := range map[string]func(w *lab.World, c *leasehold.Client, wire *lab.Wire){
			"closed": func(w *lab.World, c *leasehold.Client, _ *lab.Wire) {
				lab.OK(w.T, c.Close(w.T.Context()))
			},
			"marked dead by waiter": func(w *lab.World, _ *leasehold.Client, wire *lab.Wire) {
				wire.SetFault(lab.Cut)
				cfg := lab.Config()
				cfg.Retention = retention
				waiter, _ := w.Client(cfg)
				w.Release(w.Acquire(waiter, "job"))
			},
		} {
			t.Run(fmt.Sprint(retention, ", ", name), func(t *testing.T) {
				lab.InBubble(t, func(t *testing.T, w *lab.World) {
					cfg := lab.SharedConfig()
					cfg.Retention = retention
					c, wire := w.Client(cfg)
					var again func() (*http.Response, error)
					wire.SetFault(lab.Once(lab.Call.Grants, func(r *lab.Request) (*http.Response, error) {
						again = r.Send
						return r.Send()
					}))
					w.Acquire(c, "job")
					row := w.Sessions()[0]
					end(w, c, wire)
					lab.Elapse(24 * time.Hour)
					collect(w)
					_, _ = again()
					lab.Want(t, "mark of the dead session", lab.Text(w.Item(row), "dead"), "1")
					lab.Elapse(7 * 24 * time.Hour)
					collect(w)
					lab.Want(t, "row of the dead session", w.Item(row), nil)
				})
			})
		}
	}
}

func TestRetentionSetsTTLOfReleasedRecord(t *testing.T) {
	week, day := 7*24*time.Hour, 24*time.Hour
	type row struct {
		retention time.Duration
		option    []leasehold.AcquireOption
		end       []leasehold.ReleaseOption
		want      time.Duration // time until the record's TTL; zero if the record must have no TTL
	}
	withData := []leasehold.AcquireOption{leasehold.WithData([]byte("x"))}
	withA := []leasehold.AcquireOption{leasehold.WithAttributes(map[string]types.AttributeValue{"a": lab.Str("x")})}
	withoutA := []leasehold.ReleaseOption{leasehold.WithAttributes(map[string]types.AttributeValue{"a": nil})}
	lab.Each(t, map[string]row{
		"no data":            {0, nil, nil, week},
		"data":               {0, withData, nil, 0},
		"attributes":         {0, withA, nil, 0},
		"attributes removed": {0, withA, withoutA, week},
		"retention set":      {day, withData, nil, day},
		"forever":            {leasehold.Forever, nil, nil, 0},
	}, func(t *testing.T, w *lab.World, tc row) {
		cfg := lab.Config()
		cfg.Retention = tc.retention
		c, _, lock := w.Holding(cfg, tc.option...)
		lab.Want(t, "TTL of a held record", w.Item("job")["expiresAt"], nil)
		w.Release(lock, tc.end...)
		want := ""
		if tc.want != 0 {
			want = fmt.Sprint(time.Now().Add(tc.want).Unix())
		}
		lab.Want(t, "TTL of a released record", lab.Number(w.Item("job"), "expiresAt"), want)
		lock = w.Acquire(c, "job")
		lab.Want(t, "TTL of a record granted again", w.Item("job")["expiresAt"], nil)
		w.Release(lock)
	})
}

func TestUndoOfAbandonedGrantSetsNoTTLOnRecordWithData(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Client(lab.Config())
		w.Release(w.Acquire(c, "job", leasehold.WithData([]byte("precious"))))
		lab.Want(t, "TTL of a record with data", w.Item("job")["expiresAt"], nil)
		wire.SetFault(lab.Once(lab.Call.Grants, lab.LoseReply))
		lab.WantErr(t, "acquire", lab.ErrorOf(c.Acquire(w.Within(10*time.Millisecond), "job")), context.DeadlineExceeded)
		lab.Elapse(5 * time.Second)
		w.WantReleased("job")
		wantData(w)
	})
}

func TestReleaseSetsNoTTLIfRenewalMayHaveStoredDataInRecord(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		_, wire, lock := w.Holding(lab.Config(), leasehold.WithoutRenewal())
		wire.SetFault(lab.Once(lab.Call.Renews, lab.LoseReply))
		lab.WantErr(t, "renew", lock.Renew(w.Within(time.Nanosecond), leasehold.WithData([]byte("precious"))), leasehold.ErrUnknownOutcome)
		synctest.Wait()
		w.Release(lock)
		wantData(w)
	})
}

func TestRecordHasNoTTLIfDataOfCancelledWaiterWasStored(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire, lock := w.Holding(lab.Config())
		leave, left := mayLeave(w, c, leasehold.WithData([]byte("precious")))
		wire.SetFault(lab.Once(lab.Call.Grants, func(r *lab.Request) (*http.Response, error) {
			leave()
			return lab.Slow(100 * time.Millisecond)(r)
		}))
		w.Release(lock)
		<-left
		wantData(w)
	})
}

func TestReleaseSetsTTLIfEarlierHandOverWithDataIsRefused(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire, lock := w.Holding(lab.Config())
		leave, left := mayLeave(w, c, leasehold.WithData([]byte("precious")))
		wire.SetFault(lab.Once(lab.Call.HandsOver, func(*lab.Request) (*http.Response, error) {
			leave()
			return lab.Refusal(400, "AccessDeniedException"), nil
		}))
		lab.WantAs[*leasehold.OpError](t, "refused release", lock.Release(t.Context()))
		<-left
		w.Release(lock)
		lab.Want(t, "data in the record", w.Item("job")["data"], nil)
		lab.Want(t, "record has a TTL", w.Item("job")["expiresAt"] != nil, true)
	})
}

func TestRecordHasTTLAfterUnansweredHandOver(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire, lock := w.Holding(lab.Config())
		leave, left := mayLeave(w, c)
		wire.Sent()
		wire.SetFault(lab.Drop)
		lab.WantErr(t, "release", lock.Release(w.Within(5*time.Second)), leasehold.ErrUnknownOutcome)
		if n := lab.Count(wire.Sent(), lab.Call.HandsOver); n < 2 {
			t.Fatalf("bad setup: %d hand-overs", n)
		}
		leave()
		<-left
		wire.SetFault(nil)
		w.Release(lock)
		// The cancelled goroutine may have sent a grant. Let the client undo that grant
		// in the background.
		synctest.Wait()
		lab.Want(t, "record has a TTL", w.Item("job")["expiresAt"] != nil, true)
	})
}

func TestCloseSetsTTLOnlyOnSessionRow(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.SharedConfig())
		w.Acquire(c, "job")
		lab.OK(t, c.Close(t.Context()))
		if item := w.Item("job"); item == nil || item["expiresAt"] != nil {
			t.Errorf("record %v", item)
		}
		sessions := w.Sessions()
		if len(sessions) != 1 || w.Item(sessions[0])["expiresAt"] == nil {
			t.Errorf("sessions %v", sessions)
		}
	})
}
