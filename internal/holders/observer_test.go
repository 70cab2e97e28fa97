package holders

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

// checked is a table whose holders are observed, and whose reads are counted.
type checked struct {
	t       *testing.T
	db      *dynamodb.Client
	holders *leasehold.Client
	reads   *meter
	Observer
}

// meter counts requests, and the read units that they have used.
type meter struct {
	sync.Mutex
	requests int
	units    float64
}

// metered returns the client with its reads counted by the meter.
func metered(db *dynamodb.Client) (*dynamodb.Client, *meter) {
	m := &meter{}
	return dynamodb.New(db.Options(), func(o *dynamodb.Options) {
		o.APIOptions = append(slices.Clip(o.APIOptions), func(s *middleware.Stack) error {
			return s.Initialize.Add(middleware.InitializeMiddlewareFunc("Meter", m.count), middleware.After)
		})
	}), m
}

func (m *meter) count(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	switch asked := in.Parameters.(type) {
	case *dynamodb.GetItemInput:
		asked.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	case *dynamodb.BatchGetItemInput:
		asked.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	case *dynamodb.ScanInput:
		asked.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	case *dynamodb.QueryInput:
		asked.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	}
	out, md, err := next.HandleInitialize(ctx, in)
	var used []types.ConsumedCapacity
	switch got := out.Result.(type) {
	case *dynamodb.GetItemOutput:
		used = append(used, *got.ConsumedCapacity)
	case *dynamodb.BatchGetItemOutput:
		used = got.ConsumedCapacity
	case *dynamodb.ScanOutput:
		used = append(used, *got.ConsumedCapacity)
	case *dynamodb.QueryOutput:
		used = append(used, *got.ConsumedCapacity)
	}
	m.Lock()
	defer m.Unlock()
	m.requests++
	for _, u := range used {
		m.units += *u.CapacityUnits
	}
	return out, md, err
}

func (m *meter) total() (requests int, units float64) {
	m.Lock()
	defer m.Unlock()
	return m.requests, m.units
}

func newChecked(t *testing.T, cfg leasehold.Config, opts ...func(*dynamodb.Options)) *checked {
	t.Helper()
	db := localdynamo.New().Client(opts...)
	lab.OK(t, table.Create(t.Context(), db, table.Spec{Name: "locks"}))
	cfg.Table = "locks"
	holders := lab.Must(leasehold.New(db, cfg))(t)
	c := &checked{t: t, db: db, holders: holders}
	counted, reads := metered(db)
	c.reads = reads
	locks := lab.Must(leasehold.New(counted, leasehold.Config{Table: "locks", MaxSkew: cfg.MaxSkew}))(t)
	proto := lab.Must(records.WithMaxSkew(layout.Native{}, cfg.MaxSkew))(t)
	c.Observer = New(counted, "locks", proto, layout.Native{}.Capabilities(), locks)
	return c
}

// checking runs a test in a bubble with a table whose holders have the given configuration.
func checking(t *testing.T, cfg leasehold.Config, test func(t *testing.T, c *checked)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newChecked(t, cfg)
		test(t, c)
		c.close()
	})
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
	return lab.Must(c.holders.Acquire(c.t.Context(), key, opts...))(c.t)
}

// list lists the table as ls --check does.
func (c *checked) list(prefix string) []leasehold.Record {
	c.t.Helper()
	var all []leasehold.Record
	for r, err := range c.Locks.List(c.t.Context(), leasehold.ListOptions{Prefix: prefix}) {
		if err != nil {
			c.t.Fatal(err)
		}
		all = append(all, r)
	}
	requests, units := c.reads.total()
	c.Reader.MayList(Scope{Prefix: prefix}, requests, units)
	return all
}

func (c *checked) close() {
	c.t.Helper()
	lab.OK(c.t, c.holders.Close(context.WithoutCancel(c.t.Context())))
}

func TestTwoListingsFindThousandHoldersLive(t *testing.T) {
	checking(t, leasehold.Config{}, func(t *testing.T, c *checked) {
		c.hold(1000, "job/")
		records := c.list("")
		listed, _ := c.reads.total()
		found := map[State]int{}
		var first time.Duration
		began := time.Now()
		var planned Plan
		c.Watch(t.Context(), records, func(p Plan) { planned = p }, func(_ int, o Observation) {
			if found[o.State]++; first == 0 {
				first = time.Since(began)
			}
		})
		requests, units := c.reads.total()
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

func TestFewHoldersOfALargeTableAreReadByKey(t *testing.T) {
	checking(t, leasehold.Config{}, func(t *testing.T, c *checked) {
		c.hold(400, "other/", leasehold.WithoutRenewal())
		c.hold(5, "mine/")
		records := c.list("mine/")
		listed, _ := c.reads.total()
		found := c.Observe(t.Context(), records)
		requests, units := c.reads.total()
		if len(found) != 5 || found[4].State != Live || requests-listed > 3 || units-c.Reader.units/2 > 15 {
			t.Errorf("%d holders, %d requests, %.1f units", len(found), requests-listed, units-c.Reader.units/2)
		}
	})
}

func TestObserverReadsSessionRowInsteadOfEachLock(t *testing.T) {
	for _, prefix := range []string{"", "job/"} {
		checking(t, leasehold.Config{SharedLease: true}, func(t *testing.T, c *checked) {
			c.hold(300, "job/")
			records := c.list(prefix)
			listed, _ := c.reads.total()
			for _, o := range c.Observe(t.Context(), records) {
				if o.State != Live || !o.Shared {
					t.Fatalf("%+v", o)
				}
			}
			if requests, _ := c.reads.total(); requests-listed > 6 {
				t.Errorf("%d requests", requests-listed)
			}
		})
	}
}

func TestHolderObservedTooBrieflyIsUnknown(t *testing.T) {
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

func TestCancelledObservationReturnsFindings(t *testing.T) {
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

// throttling is a network that fails while on is set.
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

func TestFailedReadIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &throttling{}
		c := newChecked(t, leasehold.Config{}, func(o *dynamodb.Options) { network.next, o.HTTPClient = o.HTTPClient, network })
		c.hold(1, "job/", leasehold.WithoutRenewal())
		records := c.list("")
		time.AfterFunc(5*time.Second, func() { network.on.Store(true) })
		time.AfterFunc(8*time.Second, func() { network.on.Store(false) })
		began := time.Now()
		if found := c.Observe(t.Context(), records)[0]; found.State != Dead || time.Since(began) < 20*time.Second {
			t.Errorf("%+v after %v", found, time.Since(began))
		}
	})
}

// denying is a network that refuses one operation.
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

func TestReadOnlyPolicyIsEnoughToObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChecked(t, leasehold.Config{}, func(o *dynamodb.Options) { o.HTTPClient = denying{"BatchGetItem", o.HTTPClient} })
		c.hold(200, "other/", leasehold.WithoutRenewal())
		c.hold(5, "mine/")
		for _, o := range c.Observe(t.Context(), c.list("mine/")) {
			if o.State != Live {
				t.Errorf("%+v", o)
			}
		}
	})
}

func TestGrantOfDistinguishesGrantsInOtherLayouts(t *testing.T) {
	renewing := leasehold.Record{Owner: "java", Version: "1", Lease: time.Second}
	renewed := renewing
	renewed.Version = "2"
	if GrantOf(renewing) != GrantOf(renewed) {
		t.Error("a renewal is taken for another grant")
	}
	fixed := leasehold.Record{Owner: "mutex", Version: "1"}
	next := fixed
	next.Version = "2"
	if GrantOf(fixed) == GrantOf(next) {
		t.Error("two grants of a holder that does not renew are taken for one")
	}
}

func TestHolderWithSharedLeaseIsObservedThroughSession(t *testing.T) {
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

func TestStillDeadRejectsHolderThatRenewedSession(t *testing.T) {
	checking(t, leasehold.Config{SharedLease: true}, func(t *testing.T, by *checked) {
		lock := by.acquire("job")
		by.Limit = time.Second
		found := by.Observe(t.Context(), []leasehold.Record{lock.Record()})[0]
		lab.WantError(t, "before it has renewed", by.StillDead(t.Context(), found), nil)
		time.Sleep(6 * time.Second)
		lab.WantError(t, "after it has renewed", by.StillDead(t.Context(), found), leasehold.ErrChanged)
		by.close()
		lab.WantError(t, "after its session has ended", by.StillDead(t.Context(), found), nil)
	})
}

func TestObserverIgnoresLeaseOfRecordWithoutSessionRow(t *testing.T) {
	checking(t, leasehold.Config{SharedLease: true}, func(t *testing.T, o *checked) {
		lock := o.acquire("job")
		row := map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: "leasehold/session/" + protocol.ClientID(lock.Record().Owner)}}
		lab.Must(o.db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("locks"), Key: row}))(t)
		began := time.Now()
		found := o.Observe(t.Context(), []leasehold.Record{lock.Record()})[0]
		if took := time.Since(began); found.State != Dead || !found.Shared || took < 20*time.Second || took > 21*time.Second {
			t.Errorf("found %q by %+v after %v", found.State, found.Beat, took)
		}
	})
}
