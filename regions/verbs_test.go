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

// verbs are uses of locks that need no transaction. No lock is held after any of them.
var verbs = map[string]func(ctx context.Context, c *leasehold.Client) error{
	"Acquire": func(ctx context.Context, c *leasehold.Client) error {
		lock, err := c.Acquire(ctx, "a", leasehold.WithData([]byte("x")))
		if err != nil {
			return err
		}
		return errors.Join(lock.Renew(ctx), lock.Release(ctx))
	},
	"AcquireAll": func(ctx context.Context, c *leasehold.Client) error {
		group, err := c.AcquireAll(ctx, leasehold.Keys("a", "b", "c"))
		if err != nil {
			return err
		}
		return group.Release(ctx)
	},
	"AcquireAny": func(ctx context.Context, c *leasehold.Client) error {
		lock, err := c.AcquireAny(ctx, leasehold.Keys("a", "b"))
		if err != nil {
			return err
		}
		return lock.Release(ctx)
	},
	"Once": func(ctx context.Context, c *leasehold.Client) error {
		nothing := func(context.Context, *leasehold.Lock) error { return nil }
		label := leasehold.Once(time.Now().String())
		if err := c.Do(ctx, "a", nothing, label); err != nil {
			return err
		}
		if err := c.Do(ctx, "a", nothing, label); !errors.Is(err, leasehold.ErrDone) {
			return fmt.Errorf("the second: %w", err)
		}
		return nil
	},
	"Detach and Resume": func(ctx context.Context, c *leasehold.Client) error {
		lock, err := c.Acquire(ctx, "a")
		if err != nil {
			return err
		}
		grant, err := lock.Detach()
		if err != nil {
			return err
		}
		if lock, err = c.Resume(ctx, grant); err != nil {
			return err
		}
		return lock.Release(ctx)
	},
	"Break": func(ctx context.Context, c *leasehold.Client) error {
		lock, err := c.Acquire(ctx, "a")
		if err != nil {
			return err
		}
		err = c.Break(ctx, lock.Record(), leasehold.BreakOptions{Reason: "test"})
		if lost := lock.Renew(ctx); !errors.Is(lost, leasehold.ErrLost) {
			err = errors.Join(err, fmt.Errorf("renewed after a break: %w", lost))
		}
		return err
	},
	"a hand-over": func(ctx context.Context, c *leasehold.Client) error {
		lock, err := c.Acquire(ctx, "a")
		if err != nil {
			return err
		}
		next := make(chan error, 1)
		go func() {
			lock, err := c.Acquire(ctx, "a")
			if err == nil {
				err = lock.Release(ctx)
			}
			next <- err
		}()
		time.Sleep(100 * time.Millisecond)
		return errors.Join(lock.Release(ctx), <-next)
	},
	"an election": func(ctx context.Context, c *leasehold.Client) error {
		e, err := election.New(c, "leader")
		if err != nil {
			return err
		}
		return e.Lead(ctx, "me", func(ctx context.Context, term *leasehold.Lock) error {
			leader, err := e.Leader(ctx)
			if err == nil && leader.Value != "me" {
				err = fmt.Errorf("%+v leads", leader)
			}
			return err
		})
	},
	"a semaphore": func(ctx context.Context, c *leasehold.Client) error {
		permits, err := semaphore.New(c, "permit", 3)
		if err != nil {
			return err
		}
		return permits.Do(ctx, func(context.Context, *leasehold.Lock) error { return nil })
	},
	"a read/write lock": func(ctx context.Context, c *leasehold.Client) error {
		rw, err := rwlock.New(c, "data", 3)
		if err != nil {
			return err
		}
		return errors.Join(rw.DoRead(ctx, func(context.Context, *leasehold.Lock) error { return nil }),
			rw.DoWrite(ctx, func(context.Context, *leasehold.Group) error { return nil }))
	},
}

func TestLockCallsWorkInHomeAndFailoverRegions(t *testing.T) {
	configs := map[string]leasehold.Config{"a lease each": lab.Config(), "a shared lease": lab.SharedConfig()}
	for name, verb := range verbs {
		for leases, cfg := range configs {
			if cfg.SharedLease && strings.HasPrefix(name, "Detach") {
				continue // a lock under a shared lease cannot be detached
			}
			t.Run(name+", "+leases, func(t *testing.T) {
				inRegions(t, func(t *testing.T, w *world) {
					db, client := w.process(0, cfg)
					if err := verb(t.Context(), client); err != nil {
						t.Errorf("at home: %v", err)
					}
					w.darken(0, lab.Cut)
					if err := verb(t.Context(), client); err != nil || db.Region() == names[0] {
						t.Errorf("away, in %s: %v", db.Region(), err)
					}
					lab.OK(t, client.Close(t.Context()))
					for _, region := range names {
						if n := w.count(region, "TransactWriteItems").Load(); n > 0 {
							t.Errorf("%d transactions in %s", n, region)
						}
					}
				})
			})
		}
	}
}

// pool is a wire that leasehold takes for the SDK's own HTTP client with the given number
// of idle connections.
type pool struct {
	*lab.Wire
	idle int
}

func (p pool) GetTransport() *http.Transport {
	return awshttp.NewBuildableClient().WithTransportOptions(func(tr *http.Transport) { tr.MaxIdleConnsPerHost = p.idle }).GetTransport()
}

func TestTooFewIdleConnectionsToRegionAreLogged(t *testing.T) {
	for few := range names {
		t.Run(names[few], func(t *testing.T) {
			inRegions(t, func(t *testing.T, w *world) {
				var s seen
				cfg := s.config()
				var clients []*dynamodb.Client
				for n, name := range names {
					p := pool{w.Wire(), 128}
					if n == few {
						p.idle = 10
					}
					p.SetFault(func(r *lab.Request) (*http.Response, error) {
						if r.Op == "DescribeTable" {
							return w.describe(n, false), nil
						}
						return r.Send()
					})
					clients = append(clients, w.Connect(nil, func(o *dynamodb.Options) { o.HTTPClient, o.Region = p, name }).Client)
				}
				_, client := w.clientOf(clients, cfg)
				w.AcquireMany(client, "job", 300)
				lab.OK(t, client.Close(t.Context()))
				if n := strings.Count(s.log.String(), "MaxIdleConnsPerHost=10"); n != 1 {
					t.Errorf("%d warnings", n)
				}
			})
		})
	}
}
