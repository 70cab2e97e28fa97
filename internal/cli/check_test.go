package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

// checked is a table whose holders are observed, with its reads counted.
type checked struct {
	t       *testing.T
	db      *dynamodb.Client
	holders *leasehold.Client
	reads   *meter
	observer
}

func newChecked(t *testing.T, cfg leasehold.Config, opts ...func(*dynamodb.Options)) *checked {
	t.Helper()
	db := localdynamo.New().Client(opts...)
	if err := table.Create(t.Context(), db, table.Spec{Name: "locks"}); err != nil {
		t.Fatal(err)
	}
	cfg.Table = "locks"
	holders, err := leasehold.New(db, cfg)
	if err != nil {
		t.Fatal(err)
	}
	c := &checked{t: t, db: db, holders: holders}
	counted, reads := metered(db)
	c.reads = reads
	locks, err := leasehold.New(counted, leasehold.Config{Table: "locks"})
	if err != nil {
		t.Fatal(err)
	}
	if c.observer, err = newObserver(&store{db: counted, table: "locks", layout: layout.Native{}}, locks); err != nil {
		t.Fatal(err)
	}
	return c
}

// hold acquires n keys.
func (c *checked) hold(n int, prefix string, opts ...leasehold.AcquireOption) {
	c.t.Helper()
	for i := range n {
		c.acquire(fmt.Sprint(prefix, i), opts...)
	}
}

func (c *checked) acquire(key string, opts ...leasehold.AcquireOption) *leasehold.Lock {
	c.t.Helper()
	lock, err := c.holders.Acquire(c.t.Context(), key, opts...)
	if err != nil {
		c.t.Fatal(err)
	}
	return lock
}

// list lists the table as ls --check does.
func (c *checked) list(prefix string) []leasehold.Record {
	c.t.Helper()
	var all []leasehold.Record
	for r, err := range c.locks.List(c.t.Context(), leasehold.ListPrefix(prefix)) {
		if err != nil {
			c.t.Fatal(err)
		}
		all = append(all, r)
	}
	c.reader.listing = scope{prefix: prefix}
	c.reader.requests, c.reader.units = c.reads.total()
	c.reader.units *= 2
	return all
}

func (c *checked) close() {
	c.t.Helper()
	if err := c.holders.Close(context.WithoutCancel(c.t.Context())); err != nil {
		c.t.Fatal(err)
	}
}

func TestAThousandLiveHoldersAreToldByTwoMoreListings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChecked(t, leasehold.Config{})
		c.hold(1000, "job/")
		records := c.list("")
		listed, _ := c.reads.total()
		found := map[liveness]int{}
		var first time.Duration
		began := time.Now()
		var planned plan
		c.watch(t.Context(), records, func(p plan) { planned = p }, func(_ int, o observation) {
			if found[o.liveness]++; first == 0 {
				first = time.Since(began)
			}
		})
		requests, units := c.reads.total()
		requests, units = requests-listed, units-c.reader.units/2
		if found[live] != 1000 || requests > 3*listed || units > 3*c.reader.units {
			t.Errorf("%v with %d requests and %.0f units; a listing is %d and %.0f", found, requests, units, listed, c.reader.units)
		}
		if first > 7*time.Second || time.Since(began) > 14*time.Second {
			t.Errorf("the first row after %v, the last after %v", first, time.Since(began))
		}
		if planned.holders != 1000 || planned.longest != 20*time.Second || planned.requests != 4*listed || planned.units < units-c.reader.units {
			t.Errorf("the plan: %+v", planned)
		}
		c.close()
	})
}

func TestTheFewHoldersOfALargeTableAreReadByKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChecked(t, leasehold.Config{})
		c.hold(400, "other/", leasehold.WithoutRenewal())
		c.hold(5, "mine/")
		records := c.list("mine/")
		listed, _ := c.reads.total()
		found := c.observe(t.Context(), records)
		requests, units := c.reads.total()
		if len(found) != 5 || found[4].liveness != live || requests-listed > 3 || units-c.reader.units/2 > 15 {
			t.Errorf("%d holders, %d requests, %.1f units", len(found), requests-listed, units-c.reader.units/2)
		}
		c.close()
	})
}

func TestLocksOfOneSessionAreToldByItsRow(t *testing.T) {
	for _, prefix := range []string{"", "job/"} {
		synctest.Test(t, func(t *testing.T) {
			c := newChecked(t, leasehold.Config{SharedLease: true})
			c.hold(300, "job/")
			records := c.list(prefix)
			listed, _ := c.reads.total()
			for _, o := range c.observe(t.Context(), records) {
				if o.liveness != live || !o.heartbeat.shared {
					t.Fatalf("%+v", o)
				}
			}
			if requests, _ := c.reads.total(); requests-listed > 6 {
				t.Errorf("%d requests", requests-listed)
			}
			c.close()
		})
	}
}

func TestAHolderThatIsNotKnownInTimeIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChecked(t, leasehold.Config{})
		c.hold(1, "long/", leasehold.WithLease(1000*time.Hour))
		c.hold(1, "brief/", leasehold.WithLease(5*time.Second), leasehold.WithoutRenewal())
		c.limit = time.Minute
		began := time.Now()
		found := map[string]liveness{}
		at := map[string]time.Duration{}
		var planned plan
		records := c.list("")
		c.watch(t.Context(), records, func(p plan) { planned = p }, func(i int, o observation) {
			key := records[i].Key.Partition
			found[key], at[key] = o.liveness, time.Since(began)
			if o.err != nil {
				t.Error(o.err)
			}
		})
		if found["long/0"] != unknown || at["long/0"] != time.Minute {
			t.Errorf("a lease of 1,000 hours: %q after %v", found["long/0"], at["long/0"])
		}
		if found["brief/0"] != dead || at["brief/0"] > 6*time.Second {
			t.Errorf("a lease of 5 seconds: %q after %v", found["brief/0"], at["brief/0"])
		}
		if planned.longest > time.Minute || planned.requests > 12 {
			t.Errorf("the plan: %+v", planned)
		}
		c.close()
	})
}

func TestAnObservationThatIsEndedTellsWhatItKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChecked(t, leasehold.Config{})
		c.hold(1, "live/")
		c.hold(1, "long/", leasehold.WithLease(time.Hour))
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("Ctrl-C")
		time.AfterFunc(10*time.Second, func() { cancel(enough) })
		found := c.observe(ctx, c.list(""))
		if found[0].liveness != live || found[0].err != nil || found[1].liveness != unknown || !errors.Is(found[1].err, enough) {
			t.Errorf("%+v", found)
		}
		c.close()
	})
}

// throttling refuses requests while on.
type throttling struct {
	on   atomic.Bool
	next aws.HTTPClient
}

func (th *throttling) Do(r *http.Request) (*http.Response, error) {
	if th.on.Load() {
		return nil, errors.New("the network is down")
	}
	return th.next.Do(r)
}

func TestAReadingThatFailsIsMadeUpFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &throttling{}
		c := newChecked(t, leasehold.Config{}, func(o *dynamodb.Options) { network.next, o.HTTPClient = o.HTTPClient, network })
		c.hold(1, "job/", leasehold.WithoutRenewal())
		records := c.list("")
		time.AfterFunc(5*time.Second, func() { network.on.Store(true) })
		time.AfterFunc(8*time.Second, func() { network.on.Store(false) })
		began := time.Now()
		if found := c.observe(t.Context(), records)[0]; found.liveness != dead || time.Since(began) < 20*time.Second {
			t.Errorf("%+v after %v", found, time.Since(began))
		}
		c.close()
	})
}

// denying refuses one operation.
type denying struct {
	operation string
	next      aws.HTTPClient
}

func (d denying) Do(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), "."+d.operation) {
		return d.next.Do(r)
	}
	w := httptest.NewRecorder()
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprint(w, `{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"not authorized"}`)
	return w.Result(), nil
}

func TestAPolicyThatAllowsReadingOnlyIsEnoughToCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChecked(t, leasehold.Config{}, func(o *dynamodb.Options) { o.HTTPClient = denying{"BatchGetItem", o.HTTPClient} })
		c.hold(200, "other/", leasehold.WithoutRenewal())
		c.hold(5, "mine/")
		for _, o := range c.observe(t.Context(), c.list("mine/")) {
			if o.liveness != live {
				t.Errorf("%+v", o)
			}
		}
		c.close()
	})
}
