package regions_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/election"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/rwlock"
	"github.com/leasehold-go/leasehold/semaphore"
)

// verbs contains functions that use locks but send no transactions. Each releases its locks.
var verbs = map[string]func(t *testing.T, c *leasehold.Client){
	"Acquire": func(t *testing.T, c *leasehold.Client) {
		lock := lab.Must(c.Acquire(t.Context(), "a", leasehold.WithData([]byte("x"))))(t)
		lab.OK(t, errors.Join(lock.Renew(t.Context()), lock.Release(t.Context())))
	},
	"AcquireAll": func(t *testing.T, c *leasehold.Client) {
		lab.OK(t, lab.Must(c.AcquireAll(t.Context(), leasehold.Keys("a", "b", "c")))(t).Release(t.Context()))
	},
	"AcquireAny": func(t *testing.T, c *leasehold.Client) {
		lab.OK(t, lab.Must(c.AcquireAny(t.Context(), leasehold.Keys("a", "b")))(t).Release(t.Context()))
	},
	"Once": func(t *testing.T, c *leasehold.Client) {
		label := leasehold.Once(time.Now().String())
		lab.OK(t, c.Do(t.Context(), "a", nothing, label))
		lab.WantErr(t, "second call of Do", c.Do(t.Context(), "a", nothing, label), leasehold.ErrDone)
	},
	"Detach and Resume": func(t *testing.T, c *leasehold.Client) {
		grant := lab.Must(lab.Must(c.Acquire(t.Context(), "a"))(t).Detach())(t)
		lab.OK(t, lab.Must(c.Resume(t.Context(), grant))(t).Release(t.Context()))
	},
	"Break": func(t *testing.T, c *leasehold.Client) {
		lock := lab.Must(c.Acquire(t.Context(), "a"))(t)
		lab.OK(t, c.Break(t.Context(), lock.Record(), leasehold.BreakOptions{Reason: "test"}))
		lab.WantErr(t, "renewal after a break", lock.Renew(t.Context()), leasehold.ErrLost)
	},
	"a hand-over": func(t *testing.T, c *leasehold.Client) {
		lock := lab.Must(c.Acquire(t.Context(), "a"))(t)
		next := make(chan error, 1)
		go func() { next <- c.Do(t.Context(), "a", nothing) }()
		time.Sleep(100 * time.Millisecond)
		lab.OK(t, errors.Join(lock.Release(t.Context()), <-next))
	},
	"an election": func(t *testing.T, c *leasehold.Client) {
		e := lab.Must(election.New(c, "leader"))(t)
		lab.OK(t, e.Lead(t.Context(), "me", func(ctx context.Context, _ *leasehold.Lock) error {
			leader, err := e.Leader(ctx)
			if err == nil && leader.Value != "me" {
				err = fmt.Errorf("%+v leads", leader)
			}
			return err
		}))
	},
	"a semaphore": func(t *testing.T, c *leasehold.Client) {
		lab.OK(t, lab.Must(semaphore.New(c, "permit", 3))(t).Do(t.Context(), nothing))
	},
	"a read/write lock": func(t *testing.T, c *leasehold.Client) {
		rw := lab.Must(rwlock.New(c, "data", 3))(t)
		lab.OK(t, rw.DoRead(t.Context(), nothing))
		lab.OK(t, rw.DoWrite(t.Context(), func(context.Context, *leasehold.Group) error { return nil }))
	},
}

func nothing(context.Context, *leasehold.Lock) error { return nil }

func TestLockMethodsSucceedBeforeAndAfterFailover(t *testing.T) {
	for name, verb := range verbs {
		for leases, cfg := range lab.Leases() {
			if cfg.SharedLease && strings.HasPrefix(name, "Detach") {
				continue // a lock under a shared lease cannot be detached
			}
			t.Run(name+", "+leases, func(t *testing.T) {
				inRegions(t, func(t *testing.T, w *world) {
					db, client := w.process(0, cfg)
					verb(t, client)
					w.darken(0, lab.Cut)
					t.Log("outage of the home Region")
					verb(t, client)
					lab.Want(t, "requests go to the failed Region", db.Region() == names[0], false)
					lab.OK(t, client.Close(t.Context()))
					for _, region := range names {
						lab.Want(t, "transactions in "+region, w.count(region, "TransactWriteItems").Load(), 0)
					}
				})
			})
		}
	}
}

// pool is a simulated network. To leasehold, it looks like the SDK's HTTP client, which limits
// the number of idle connections to each host.
type pool struct {
	*lab.Wire
	idle int
}

func (p pool) GetTransport() *http.Transport {
	return awshttp.NewBuildableClient().WithTransportOptions(func(tr *http.Transport) { tr.MaxIdleConnsPerHost = p.idle }).GetTransport()
}

func TestTooLowMaxIdleConnsPerHostIsLoggedOnlyOnce(t *testing.T) {
	inRegions(t, func(t *testing.T, w *world) {
		var s seen
		var clients []*dynamodb.Client
		for n, name := range names {
			p := pool{w.Wire(), 10}
			p.SetFault(func(r *lab.Request) (*http.Response, error) {
				if r.Op == "DescribeTable" {
					return w.describe(n, false), nil
				}
				return r.Send()
			})
			clients = append(clients, w.Connect(nil, func(o *dynamodb.Options) { o.HTTPClient, o.Region = p, name }).Client)
		}
		_, client := w.clientOf(clients, s.config())
		w.AcquireMany(client, "job", 300)
		lab.OK(t, client.Close(t.Context()))
		lab.Want(t, "warnings", strings.Count(s.log.String(), "MaxIdleConnsPerHost=10"), 1)
	})
}
