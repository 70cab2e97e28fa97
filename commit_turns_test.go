package leasehold_test

import (
	"context"
	"errors"
	"fmt"

	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
)

func TestCommitsOfOneLockTakeTurns(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.work().client(config())
		lock := w.acquire(c, "job")
		var mu sync.Mutex
		now, most := 0, 0
		wire.setFault(func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
			if !c.commits() {
				return next()
			}
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				now--
			}()
			return slow(time.Second)(ctx, c, next)
		})
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				if err := lock.Commit(t.Context(), writes(note("a", fmt.Sprint(i)))); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if most != 1 || len(w.log("a")) != 5 {
			t.Errorf("%d commits at once, %d landed", most, len(w.log("a")))
		}
		w.release(lock)
	})
}

func TestAReleaseWaitsForACommitUnderWay(t *testing.T) {
	for name, waiting := range map[string]bool{"released": false, "handed over": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				c, wire := w.work().client(config())
				lock := w.acquire(c, "job")
				wire.setFault(script(func(ctx context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
					time.Sleep(2 * time.Second)
					return next()
				}))
				// The caller has left; its commit is still on its way.
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := lock.Commit(ctx, writes(note("a", "1"))); !errors.Is(err, leasehold.ErrUnknownOutcome) {
					t.Errorf("commit: %v", err)
				}
				next := make(chan *leasehold.Lock, 1)
				if waiting {
					go func() { next <- w.acquire(c, "job") }()
				}
				began := time.Now()
				w.release(lock)
				if took := time.Since(began); took < time.Second {
					t.Errorf("released after %v", took)
				}
				w.wantLog("1")
				if waiting {
					w.release(<-next)
				}
			})
		})
	}
}

func TestAReleaseWaitsForACommitNoLongerThanItMay(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.work().client(config())
		lock := w.acquire(c, "job")
		wire.setFault(func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
			if c.commits() && textOf(w.item("job"), "isReleased") == "" {
				return hang(ctx)
			}
			return next()
		})
		result := make(chan error, 1)
		go func() { result <- lock.Commit(t.Context(), writes(note("a", "1"))) }()
		elapse(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_ = lock.Release(ctx)
		elapse(5 * time.Second)
		if textOf(w.item("job"), "isReleased") != "1" {
			t.Error("the key is not free")
		}
		if err := <-result; !errors.Is(err, leasehold.ErrLost) || !errors.Is(err, leasehold.ErrReleased) {
			t.Errorf("commit: %v", err)
		}
		w.wantLog()
	})
}

func TestARenewalWaitsForACommitAQuarterOfTheTrustLeft(t *testing.T) {
	for name, tc := range map[string]struct{ commit, wait time.Duration }{
		"a short one": {time.Second, time.Second},
		"a long one":  {3 * time.Second, 2 * time.Second}, // 8 s of trust are left
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				c, wire := w.work().client(config())
				lock := w.acquire(c, "job", leasehold.WithoutRenewal())
				elapse(10 * time.Second)
				wire.setFault(func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
					if c.commits() {
						time.Sleep(tc.commit - time.Millisecond)
					}
					return next()
				})
				done := make(chan error, 1)
				go func() { done <- lock.Commit(t.Context(), writes(note("a", "1"))) }()
				elapse(0)
				began := time.Now()
				if err := lock.Renew(t.Context()); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); (took - tc.wait).Abs() > 5*time.Millisecond {
					t.Errorf("the renewal waited %v, want %v", took, tc.wait)
				}
				if err := <-done; err != nil {
					t.Error(err)
				}
				w.release(lock)
			})
		})
	}
}

func TestARenewalDoesNotBreakACommit(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.work().client(config())
		lock := w.acquire(c, "job")
		wire.setFault(script(func(_ context.Context, _ call, next func() (*http.Response, error)) (*http.Response, error) {
			go func() { _ = lock.Renew(context.Background()) }()
			time.Sleep(100 * time.Millisecond)
			version := textOf(w.item("job"), "recordVersionNumber")
			w.update("job", map[string]types.AttributeValue{"recordVersionNumber": str(version + "-renewed")})
			defer w.update("job", map[string]types.AttributeValue{"recordVersionNumber": str(version)})
			return next()
		}))
		if err := lock.Commit(t.Context(), writes(note("a", "1"))); err != nil {
			t.Error(err)
		}
		elapse(time.Minute)
		w.release(lock)
	})
}

func TestClosingTheClientDoesNotWaitForACommitThatIsNeverAnswered(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		c, wire := w.work().client(config())
		lock := w.acquire(c, "job")
		wire.setFault(func(ctx context.Context, c call, next func() (*http.Response, error)) (*http.Response, error) {
			if c.commits() {
				return hang(ctx)
			}
			return next()
		})
		result := make(chan error, 1)
		go func() { result <- lock.Commit(t.Context(), writes(note("a", "1"))) }()
		elapse(time.Second)
		began := time.Now()
		if err := c.Close(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("closed after %v", took)
		}
		if err := <-result; !errors.Is(err, leasehold.ErrUnknownOutcome) || !errors.Is(err, leasehold.ErrClosed) {
			t.Errorf("commit: %v", err)
		}
	})
}
