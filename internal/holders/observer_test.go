package holders

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/layout"
)

// checked is an Observer of the holders in a table, with counts of the requests that it sends.
type checked struct {
	*lab.World
	holders *leasehold.Client
	wire    *lab.Wire // the Observer's network connection
	sent    int       // number of requests that the Observer has sent
	used    float64   // number of read units that these requests have consumed
	Observer
}

// checking runs a test in a synctest bubble, with a table and an Observer of its holders. cfg is
// the configuration of the client that holds the locks.
func checking(t *testing.T, cfg leasehold.Config, test func(t *testing.T, c *checked)) {
	t.Helper()
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		cfg.Table = "locks"
		c := &checked{World: w, holders: w.ClientOf(w.DB, cfg), wire: w.Wire()}
		c.wire.Meter = &lab.Meter{}
		db := w.Engine.Client(func(o *dynamodb.Options) { o.HTTPClient = c.wire })
		locks := w.ClientOf(db, leasehold.Config{Table: "locks", MaxSkew: cfg.MaxSkew})
		proto := lab.Must(records.WithMaxSkew(layout.Native{}, cfg.MaxSkew))(t)
		c.Observer = New(db, "locks", proto, layout.Native{}.Capabilities(), locks)
		test(t, c)
		c.close()
	})
}

// total returns how many requests the Observer has sent so far, and the read units that
// they consumed.
func (c *checked) total() (requests int, units float64) {
	c.sent += len(c.wire.Sent())
	c.used += c.wire.Meter.Reset().Read
	return c.sent, c.used
}

// hold acquires n keys that begin with prefix.
func (c *checked) hold(n int, prefix string, opts ...leasehold.AcquireOption) {
	c.T.Helper()
	for i := range n {
		c.acquire(fmt.Sprint(prefix, i), opts...)
	}
}

func (c *checked) acquire(key string, opts ...leasehold.AcquireOption) *leasehold.Lock {
	c.T.Helper()
	return lab.Must(c.holders.Acquire(c.T.Context(), key, opts...))(c.T)
}

// list returns the records with the prefix, and calls MayList, as "leasehold ls --check" does.
func (c *checked) list(prefix string) []leasehold.Record {
	c.T.Helper()
	var all []leasehold.Record
	for r, err := range c.Locks.List(c.T.Context(), leasehold.ListOptions{Prefix: prefix}) {
		if err != nil {
			c.T.Fatal(err)
		}
		all = append(all, r)
	}
	requests, units := c.total()
	c.Reader.MayList(Scope{Prefix: prefix}, requests, units)
	return all
}

func (c *checked) close() {
	c.T.Helper()
	lab.OK(c.T, c.holders.Close(context.WithoutCancel(c.T.Context())))
}

func TestObserverScansTableAtMostThreeTimes(t *testing.T) {
	checking(t, leasehold.Config{}, func(t *testing.T, c *checked) {
		c.hold(1000, "job/")
		records := c.list("")
		listed, _ := c.total()
		found := map[State]int{}
		var first time.Duration
		began := time.Now()
		var planned Plan
		c.Watch(t.Context(), records, func(p Plan) { planned = p }, func(_ int, o Observation) {
			if found[o.State]++; first == 0 {
				first = time.Since(began)
			}
		})
		requests, units := c.total()
		requests, units = requests-listed, units-c.Reader.units/2
		if found[Live] != 1000 || requests > 3*listed || units > 3*c.Reader.units {
			t.Errorf("%v with %d requests and %.0f units; a listing is %d and %.0f", found, requests, units, listed, c.Reader.units)
		}
		if first > 7*time.Second || time.Since(began) > 14*time.Second {
			t.Errorf("the first row after %v, the last after %v", first, time.Since(began))
		}
		if planned.Holders != 1000 || planned.Longest != 20*time.Second || planned.Requests != 4*listed || planned.Units < units-c.Reader.units {
			t.Errorf("the plan: %+v", planned)
		}
	})
}

func TestObserverOfFiveHoldersDoesNotScanTable(t *testing.T) {
	checking(t, leasehold.Config{}, func(t *testing.T, c *checked) {
		c.hold(400, "other/", leasehold.WithoutRenewal())
		c.hold(5, "mine/")
		records := c.list("mine/")
		listed, _ := c.total()
		found := c.Observe(t.Context(), records)
		requests, units := c.total()
		if len(found) != 5 || found[4].State != Live || requests-listed > 3 || units-c.Reader.units/2 > 15 {
			t.Errorf("%d holders, %d requests, %.1f units", len(found), requests-listed, units-c.Reader.units/2)
		}
	})
}

func TestObserverOfOneSessionSendsAtMostSixRequests(t *testing.T) {
	for _, prefix := range []string{"", "job/"} {
		checking(t, leasehold.Config{SharedLease: true}, func(t *testing.T, c *checked) {
			c.hold(300, "job/")
			records := c.list(prefix)
			listed, _ := c.total()
			for _, o := range c.Observe(t.Context(), records) {
				if o.State != Live || !o.Shared {
					t.Fatalf("%+v", o)
				}
			}
			if requests, _ := c.total(); requests-listed > 6 {
				t.Errorf("%d requests", requests-listed)
			}
		})
	}
}

func TestObserverReportsUndecidedHolderAsUnknownAtTimeLimit(t *testing.T) {
	checking(t, leasehold.Config{}, func(t *testing.T, c *checked) {
		c.hold(1, "long/", leasehold.WithLease(1000*time.Hour))
		c.hold(1, "brief/", leasehold.WithLease(5*time.Second), leasehold.WithoutRenewal())
		c.Limit = time.Minute
		began := time.Now()
		found := map[string]State{}
		at := map[string]time.Duration{}
		var planned Plan
		records := c.list("")
		c.Watch(t.Context(), records, func(p Plan) { planned = p }, func(i int, o Observation) {
			key := records[i].Key.Partition
			found[key], at[key] = o.State, time.Since(began)
			if o.Err != nil {
				t.Error(o.Err)
			}
		})
		if found["long/0"] != Unknown || at["long/0"] != time.Minute {
			t.Errorf("a lease of 1,000 hours: %q after %v", found["long/0"], at["long/0"])
		}
		if found["brief/0"] != Dead || at["brief/0"] > 6*time.Second {
			t.Errorf("a lease of 5 seconds: %q after %v", found["brief/0"], at["brief/0"])
		}
		if planned.Longest > time.Minute || planned.Requests > 12 {
			t.Errorf("the plan: %+v", planned)
		}
	})
}

func TestCancelledObservationReturnsStatesFoundSoFar(t *testing.T) {
	checking(t, leasehold.Config{}, func(t *testing.T, c *checked) {
		c.hold(1, "live/")
		c.hold(1, "long/", leasehold.WithLease(time.Hour))
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("Ctrl-C")
		time.AfterFunc(10*time.Second, func() { cancel(enough) })
		found := c.Observe(ctx, c.list(""))
		if found[0].State != Live || found[0].Err != nil || found[1].State != Unknown || !errors.Is(found[1].Err, enough) {
			t.Errorf("%+v", found)
		}
	})
}

func TestObserverRepeatsFailedRead(t *testing.T) {
	checking(t, leasehold.Config{}, func(t *testing.T, c *checked) {
		c.hold(1, "job/", leasehold.WithoutRenewal())
		records := c.list("")
		down := func(*lab.Request) (*http.Response, error) { return nil, lab.ErrReset }
		time.AfterFunc(5*time.Second, func() { c.wire.SetFault(down) })
		time.AfterFunc(8*time.Second, func() { c.wire.SetFault(nil) })
		began := time.Now()
		if found := c.Observe(t.Context(), records)[0]; found.State != Dead || time.Since(began) < 20*time.Second {
			t.Errorf("%+v after %v", found, time.Since(began))
		}
	})
}

func TestObserverFindsLiveHoldersIfBatchGetItemIsDenied(t *testing.T) {
	checking(t, leasehold.Config{}, func(t *testing.T, c *checked) {
		c.wire.SetFault(lab.Respond(func(c lab.Call) bool { return c.Op == "BatchGetItem" },
			func() *http.Response { return lab.Refusal(400, "AccessDeniedException") }))
		c.hold(200, "other/", leasehold.WithoutRenewal())
		c.hold(5, "mine/")
		for _, o := range c.Observe(t.Context(), c.list("mine/")) {
			lab.Want(t, "state", o.State, Live)
		}
	})
}

func TestNextGrantChangesGrantIdentifierButRenewalDoesNot(t *testing.T) {
	renewing := leasehold.Record{Owner: "java", Version: "1", Lease: time.Second}
	renewed := renewing
	renewed.Version = "2"
	lab.Want(t, "grant of a renewal", GrantOf(renewing), GrantOf(renewed))
	fixed := leasehold.Record{Owner: "mutex", Version: "1"}
	next := fixed
	next.Version = "2"
	if GrantOf(fixed) == GrantOf(next) {
		t.Error("GrantOf returned the same for two grants of a holder that does not renew")
	}
}

func TestObserverJudgesHolderByStateOfSession(t *testing.T) {
	checking(t, leasehold.Config{SharedLease: true}, func(t *testing.T, o *checked) {
		lock := o.acquire("job")
		records := []leasehold.Record{lock.Record()}
		o.Watch(t.Context(), records, func(p Plan) {
			if p.Holders != 1 || p.Longest != 20*time.Second {
				t.Errorf("the plan: %+v", p)
			}
		}, func(int, Observation) {})
		began := time.Now()
		if found := o.Observe(t.Context(), records)[0].State; found != Live || time.Since(began) > 20*time.Second {
			t.Errorf("a holder whose session is renewed: %q after %v", found, time.Since(began))
		}
		o.close()
		began = time.Now()
		if found := o.Observe(t.Context(), records)[0].State; found != Dead || time.Since(began) > 0 {
			t.Errorf("a holder whose session is dead: %q after %v", found, time.Since(began))
		}
	})
}

func TestStillDeadMethodReturnsErrChangedIfSessionIsRenewed(t *testing.T) {
	checking(t, leasehold.Config{SharedLease: true}, func(t *testing.T, by *checked) {
		lock := by.acquire("job")
		by.Limit = time.Second
		found := by.Observe(t.Context(), []leasehold.Record{lock.Record()})[0]
		lab.WantErr(t, "before it has renewed", by.StillDead(t.Context(), found), nil)
		time.Sleep(6 * time.Second)
		lab.WantErr(t, "after it has renewed", by.StillDead(t.Context(), found), leasehold.ErrChanged)
		by.close()
		lab.WantErr(t, "after its session has ended", by.StillDead(t.Context(), found), nil)
	})
}
