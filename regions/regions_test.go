package regions_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/machine"
	"github.com/leasehold-go/leasehold/regions"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var names = []string{"us-east-1", "us-east-2", "us-west-2"}

// world is a global table in three simulated Regions. All Regions share one engine, which
// simulates strong consistency.
type world struct {
	*lab.World
	mode   string                              // consistency mode that DescribeTable returns
	status string                              // replica status that DescribeTable returns
	dark   [3]atomic.Pointer[lab.Fault]        // fault of each Region; nil while the Region works
	sent   map[string]map[string]*atomic.Int64 // number of requests by Region and operation
	mu     sync.Mutex                          // guards the field "sent"
}

func inRegions(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		test(t, &world{World: w, mode: "STRONG", status: "ACTIVE", sent: map[string]map[string]*atomic.Int64{}})
		lab.Elapse(10 * time.Second) // wait until delayed requests have reached the engine
	})
}

// eachWay runs a test once for each way in which a Region can fail.
func eachWay(t *testing.T, test func(t *testing.T, w *world, way lab.Fault)) {
	t.Helper()
	lab.Variants(t, ways, func(t *testing.T, way lab.Fault) { inRegions(t, func(t *testing.T, w *world) { test(t, w, way) }) })
}

func (w *world) count(region, op string) *atomic.Int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sent[region] == nil {
		w.sent[region] = map[string]*atomic.Int64{}
	}
	if w.sent[region][op] == nil {
		w.sent[region][op] = new(atomic.Int64)
	}
	return w.sent[region][op]
}

// process simulates a process with the given home Region. It returns the DB of the process
// and a client that uses the DB.
func (w *world) process(home int, cfg leasehold.Config) (*regions.DB, *leasehold.Client) {
	w.T.Helper()
	var clients []*dynamodb.Client
	for i := range names {
		n := (home + i) % len(names)
		wire := w.Wire()
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			w.count(names[n], r.Op).Add(1)
			if dark := w.dark[n].Load(); dark != nil {
				return (*dark)(r)
			}
			time.Sleep(15 * time.Millisecond)
			if r.Op == "DescribeTable" {
				return w.describe(n, strings.Contains(string(r.Body), `"eventual"`)), nil
			}
			return r.Send()
		})
		clients = append(clients, w.Connect(nil, func(o *dynamodb.Options) { o.HTTPClient, o.Region = wire, names[n] }).Client)
	}
	return w.clientOf(clients, cfg)
}

func (w *world) clientOf(clients []*dynamodb.Client, cfg leasehold.Config) (*regions.DB, *leasehold.Client) {
	w.T.Helper()
	db := regions.New(clients[0], clients[1:]...)
	onMachine := w.Connect(nil)
	return db, w.ClientOf(struct {
		*regions.DB
		machine.Provider
	}{db, onMachine}, cfg)
}

// describe returns the DescribeTable reply of Region n.
func (w *world) describe(n int, eventual bool) *http.Response {
	mode := w.mode
	if eventual {
		mode = "EVENTUAL"
	}
	var replicas []string
	for i, name := range names {
		if i != n {
			replicas = append(replicas, fmt.Sprintf(`{"RegionName":%q,"ReplicaStatus":%q}`, name, w.status))
		}
	}
	body := fmt.Sprintf(`{"Table":{"TableName":"locks","MultiRegionConsistency":%q,"Replicas":[%s]}}`, mode, strings.Join(replicas, ","))
	res := lab.Refusal(200, "")
	res.Body, res.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	return res
}

func (w *world) darken(n int, fault lab.Fault) { w.dark[n].Store(&fault) }
func (w *world) lighten(n int)                 { w.dark[n].Store(nil) }

// ways are the ways in which a Region can fail.
var ways = map[string]lab.Fault{
	"no connection":       func(*lab.Request) (*http.Response, error) { return nil, lab.ErrReset },
	"no answer":           lab.Cut,
	"served late":         lab.Delayed(5 * time.Second),
	"reply lost":          lab.LoseReply,
	"server error":        lab.Answer(func() *http.Response { return lab.Refusal(500, "InternalServerError") }),
	"service unavailable": lab.Out,
	"slow":                lab.Slow(2 * time.Second),
}

func TestLocksSurviveOutageOfHomeRegion(t *testing.T) {
	eachWay(t, func(t *testing.T, w *world, way lab.Fault) {
		db, client := w.process(0, lab.Config())
		var locks []*leasehold.Lock
		for n := range 8 {
			locks = append(locks, w.Acquire(client, fmt.Sprint(n)))
		}
		lab.Elapse(10 * time.Second)
		w.darken(0, way)
		lab.Elapse(30 * time.Second)
		lab.Want(t, "requests go to the failed Region", db.Region() == names[0], false)
		began := time.Now()
		w.Release(locks[0])
		lab.WantTook(t, "a release took", began, 0, 1500*time.Millisecond)
		w.lighten(0)
		lab.Elapse(45 * time.Second)
		lab.Want(t, "lost locks", lab.Lost(locks[1:]), 0)
		lab.Want(t, "Region", db.Region(), names[0])
		for _, lock := range locks[1:] {
			w.Release(lock)
		}
	})
}

func TestEventuallyConsistentTableNeverFailsOver(t *testing.T) {
	inRegions(t, func(t *testing.T, w *world) {
		w.mode = "EVENTUAL"
		_, client := w.process(0, lab.Config())
		w.Release(w.Acquire(client, "a"))
		lab.Elapse(time.Second)
		w.darken(0, ways["no connection"])
		err := lab.ErrorOf(client.Acquire(w.Within(time.Minute), "a"))
		lab.WantText(t, "acquire", err, "no failover from us-east-1: table locks: "+
			"it is no global table with multi-Region strong consistency")
		for _, away := range names[1:] {
			for op, n := range w.sent[away] {
				lab.Want(t, "operation in "+away, op, "DescribeTable")
				lab.Want(t, "requests in "+away, n.Load(), 1)
			}
		}
	})
}

func TestProcessStartedInOutageAcquiresLock(t *testing.T) {
	eachWay(t, func(t *testing.T, w *world, way lab.Fault) {
		w.darken(0, way)
		_, client := w.process(0, lab.Config())
		w.Release(lab.Must(client.Acquire(w.Within(5*time.Second), "a"))(t))
	})
}

// TestKeyHasAtMostOneHolderWhileRegionsFail runs processes with different home Regions, which
// compete for two keys. Nearly all the time, one of the Regions is down.
func TestKeyHasAtMostOneHolderWhileRegionsFail(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inRegions(t, func(t *testing.T, w *world) {
				rng := rand.New(rand.NewPCG(seed, 0))
				dark := slices.Sorted(maps.Keys(ways))
				cfg := lab.Config()
				cfg.Lease = 5 * time.Second
				until, stop := context.WithTimeout(t.Context(), 2*time.Minute)
				defer stop()
				var believers [2]atomic.Int32
				var grants, lost atomic.Int32
				var work sync.WaitGroup
				for n := range 6 {
					_, client := w.process(n%2, cfg)
					work.Go(func() {
						for until.Err() == nil {
							key := n % 2
							lock, err := client.Acquire(until, fmt.Sprint(key))
							if err != nil {
								lab.WantErr(t, "Acquire", err, context.DeadlineExceeded)
								continue
							}
							grants.Add(1)
							lab.Want(t, "clients that hold the key", believers[key].Add(1), 1)
							time.Sleep(2 * time.Second)
							believers[key].Add(-1)
							if lock.Context().Err() != nil {
								lost.Add(1)
							}
							_ = lock.Release(context.WithoutCancel(until))
						}
					})
				}
				for until.Err() == nil {
					n := rng.IntN(3)
					w.darken(n, ways[dark[rng.IntN(len(dark))]])
					time.Sleep(4*time.Second + time.Duration(rng.Int64N(int64(5*time.Second))))
					w.lighten(n)
					time.Sleep(time.Second)
				}
				work.Wait()
				if lost.Load() > 0 || grants.Load() < 60 {
					t.Errorf("%d grants, %d lost", grants.Load(), lost.Load())
				}
			})
		})
	}
}

func TestLocksSurviveOutageIfTableWasNotReadyAtStart(t *testing.T) {
	refused := func(code string) func(*world, int) {
		return func(w *world, n int) {
			w.darken(n, lab.On(func(c lab.Call) bool { return c.Op == "DescribeTable" }, lab.Refused(code)))
		}
	}
	for name, spoil := range map[string]func(w *world, n int){
		"a replica was not active":      func(w *world, _ int) { w.status = "UPDATING" },
		"DescribeTable was denied":      refused("AccessDeniedException"),
		"the table was not created yet": refused("ResourceNotFoundException"),
	} {
		t.Run(name, func(t *testing.T) {
			inRegions(t, func(t *testing.T, w *world) {
				var s seen
				for n := range names {
					spoil(w, n)
				}
				db, client := w.process(0, s.config())
				lock := w.Acquire(client, "a")
				lab.Elapse(time.Minute)
				w.status = "ACTIVE"
				for n := range names {
					w.lighten(n)
				}
				w.darken(0, ways["no answer"])
				lab.Elapse(30 * time.Second)
				lab.WantErr(t, "lock", lock.Err(), nil)
				lab.Want(t, "Region", db.Region(), names[1])
				lab.Want(t, "moves reported", len(s.events), 1)
				w.lighten(0)
				_ = lock.Release(t.Context())
			})
		})
	}
}

func TestRequestsToEventuallyConsistentTableStayInHomeRegion(t *testing.T) {
	inRegions(t, func(t *testing.T, w *world) {
		db, client := w.process(0, lab.Config())
		lock := w.Acquire(client, "a")
		w.darken(0, ways["no connection"])
		lab.Elapse(10 * time.Second)
		before := w.count(names[1], "GetItem").Load()
		_, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("eventual"), Key: lab.Key("a")})
		if n := w.count(names[1], "GetItem").Load(); err == nil || n != before || db.Region() != names[1] {
			t.Errorf("error %v, %d reads in %s", err, n-before, names[1])
		}
		w.lighten(0)
		w.Release(lock)
	})
}

func TestAlwaysSlowRegionCausesNoFailover(t *testing.T) {
	inRegions(t, func(t *testing.T, w *world) {
		w.darken(0, lab.Slow(2*time.Second))
		db, client := w.process(0, lab.Config())
		lock := w.Acquire(client, "a")
		lab.Elapse(10 * time.Second)
		lab.Want(t, "Region", db.Region(), names[0])
		w.lighten(0)
		w.Release(lock)
	})
}

// Reads that are answered within a second must not shorten the time limit of writes: every write
// would then end without an answer, in one Region after the other.
func TestSlowWritesBesideQuickReadsLoseNoLocks(t *testing.T) {
	inRegions(t, func(t *testing.T, w *world) {
		_, client := w.process(0, lab.Config())
		_, other := w.process(0, lab.Config())
		var locks []*leasehold.Lock
		var waits []<-chan *leasehold.Lock
		for n := range 8 {
			locks = append(locks, w.Acquire(client, fmt.Sprint(n)), w.Acquire(other, fmt.Sprint("other ", n)))
			waits = append(waits, w.Queue(client, fmt.Sprint("other ", n)))
		}
		for n := range names {
			w.darken(n, lab.On(isUpdate, lab.Slow(1500*time.Millisecond)))
		}
		lab.Elapse(time.Minute)
		lab.Want(t, "locks lost", lab.Lost(locks), 0)
		for _, lock := range locks {
			_ = lock.Release(t.Context())
		}
		for _, wait := range waits {
			w.Release(<-wait)
		}
	})
}

func isUpdate(c lab.Call) bool { return c.Op == "UpdateItem" }

func TestRequestsDoNotReturnToSlowHomeRegion(t *testing.T) {
	inRegions(t, func(t *testing.T, w *world) {
		db, client := w.process(0, lab.Config())
		lock := w.Acquire(client, "a")
		w.darken(0, ways["no connection"])
		lab.Elapse(10 * time.Second)
		w.darken(0, lab.Slow(2*time.Second))
		for range 120 {
			if lab.Elapse(time.Second); db.Region() == names[0] {
				t.Fatal("requests returned to the home Region")
			}
		}
		w.lighten(0)
		w.Release(lock)
	})
}

func TestProbeIsStronglyConsistentGetItem(t *testing.T) {
	inRegions(t, func(t *testing.T, w *world) {
		_, client := w.process(0, lab.Config())
		lock := w.Acquire(client, "a")
		lab.Elapse(time.Second)
		var strong, others atomic.Int64
		w.darken(0, func(r *lab.Request) (*http.Response, error) {
			switch {
			case r.Op != "GetItem":
			case strings.Contains(string(r.Body), `"ConsistentRead":true`):
				strong.Add(1)
			default:
				others.Add(1)
			}
			return nil, lab.ErrReset
		})
		lab.Elapse(30 * time.Second)
		if strong.Load() < 3 || others.Load() > 0 {
			t.Errorf("%d strong reads, %d others", strong.Load(), others.Load())
		}
		w.lighten(0)
		w.Release(lock)
	})
}

func TestDBWithOneRegionDoesNotDescribeTable(t *testing.T) {
	inRegions(t, func(t *testing.T, w *world) {
		wire := w.Wire()
		home := w.Connect(nil, func(o *dynamodb.Options) { o.HTTPClient, o.Region = wire, names[0] }).Client
		client := w.ClientOf(struct {
			*regions.DB
			machine.Provider
		}{regions.New(home), w.Connect(nil)}, lab.Config())
		w.Release(w.Acquire(client, "a"))
		lab.Elapse(time.Second)
		lab.Want(t, "DescribeTable was sent", slices.Contains(lab.Ops(wire.Sent()), "DescribeTable"), false)
	})
}

func TestNewPanicsIfClientsShareRegion(t *testing.T) {
	client := dynamodb.New(dynamodb.Options{Region: names[0]})
	defer func() {
		if said := recover(); said == nil || !strings.Contains(fmt.Sprint(said), names[0]) {
			t.Errorf("panic %v", said)
		}
	}()
	regions.New(client, client)
}

// DescribeTable may be answered by a proxy, and not by DynamoDB. The proxy's reply does not
// prove that the table is strongly consistent.
func TestClientDoesNotFailOverIfProxyAnswersDescribeTable(t *testing.T) {
	inRegions(t, func(t *testing.T, w *world) {
		for n := range names {
			w.darken(n, func(r *lab.Request) (*http.Response, error) {
				if r.Op != "DescribeTable" {
					return r.Send()
				}
				foreign := w.describe(n, false)
				foreign.Header = http.Header{"Content-Type": {"application/json"}}
				return foreign, nil
			})
		}
		db, client := w.process(0, lab.Config())
		lock := w.Acquire(client, "a")
		w.darken(0, ways["no connection"])
		lab.Elapse(10 * time.Second)
		lab.Want(t, "Region", db.Region(), names[0])
		w.lighten(0)
		w.Release(lock)
	})
}

func TestRequestsThatNameTableByARNStayInHomeRegion(t *testing.T) {
	inRegions(t, func(t *testing.T, w *world) {
		db, _ := w.process(0, lab.Config())
		w.darken(0, ways["no connection"])
		arn := "arn:aws:dynamodb:us-east-1:123456789012:table/locks"
		for range 3 {
			_, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String(arn), Key: lab.Key("a")})
			lab.WantText(t, "read", err, "no failover from us-east-1: table "+arn+": "+
				"its ARN names one Region: use the table's name")
			lab.Elapse(2 * time.Second)
		}
		lab.Want(t, "Region", db.Region(), names[0])
	})
}

func TestDescribeTableIsRepeatedUntilAnswered(t *testing.T) {
	inRegions(t, func(t *testing.T, w *world) {
		for n := range names {
			w.darken(n, ways["no connection"])
		}
		_, client := w.process(0, lab.Config())
		acquired := w.Queue(client, "a")
		lab.Elapse(20 * time.Second)
		lab.WantRange(t, "requests of DescribeTable in 20 s", w.count(names[2], "DescribeTable").Load(), 5, 21)
		w.lighten(2)
		lab.Elapse(10 * time.Second)
		w.Release(<-acquired)
	})
}

func TestScanWaitsLongerThanOneSecondForReply(t *testing.T) {
	inRegions(t, func(t *testing.T, w *world) {
		db, client := w.process(0, lab.Config())
		w.Release(w.Acquire(client, "a"))
		w.darken(0, lab.Slow(2*time.Second))
		lab.Must(db.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("locks")}))(t)
	})
}

// A client usually waits three seconds for a reply. Once the Region has replied within one
// second, the client waits only one second for each later reply, and then uses the next Region.
func TestUnansweredRequestMovesToNextRegionAfterOneSecond(t *testing.T) {
	inRegions(t, func(t *testing.T, w *world) {
		db, client := w.process(0, lab.Config())
		lock := w.Acquire(client, "a")
		lab.Elapse(time.Second) // time in which the client learns that the table is strongly consistent
		w.darken(0, ways["no answer"])
		began := time.Now()
		w.Release(lock)
		lab.WantTook(t, "the release took", began, 0, 1500*time.Millisecond)
		lab.Want(t, "Region", db.Region(), names[1])
	})
}
