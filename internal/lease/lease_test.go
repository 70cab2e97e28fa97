package lease

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/core"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/machine"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/renewals"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// usual is the timing of the leases in these tests. A lease is trusted for 18 s, and
// renewed every 5 s.
var usual = Timing{Lease: 20 * time.Second, Margin: 2 * time.Second, Every: 5 * time.Second}

// world simulates the table and the holder for one lease. The table contains one record. A test
// chooses what happens to each renewal.
type world struct {
	attempts.DB
	client *Leases
	lease  *Lease
	began  time.Time

	mu        sync.Mutex    // guards the fields below
	suspended time.Duration // how long the machine was suspended: boot time minus monotonic time
	version   string        // version that the record contains
	named     []string      // versions of the record that the condition of the renewal in flight accepts
	next      string        // version that the renewal in flight writes
	spelled   func()        // called after the lease has built a renewal, and before it sends that renewal; may be nil
	fate      fate          // what happens to renewals; nil to apply and answer them
	sent      int
	losses    []Loss
	extended  int
	renewed   int
}

// fate decides whether a renewal is applied, and what reply the lease receives. To have the
// renewal applied, a fate calls the function "apply".
type fate func(apply func() (protocol.Item, error)) (protocol.Item, error)

var errLost = errors.New("lost")

// newWorld returns a world with a lease that was granted just now. If change is not nil, it
// may edit the settings of the lease before the grant.
func newWorld(change func(*Leases, *Terms)) *world {
	w := &world{began: time.Now(), version: "granted"}
	w.client = &Leases{Env: &core.Env{
		Machine:  machine.Machine{Now: w.now},
		Requests: &attempts.Sender{DB: w, Keys: w, Chance: func() float64 { return 0.5 }, Log: slog.New(slog.DiscardHandler)},
	}}
	w.client.Scheduler = renewals.New(16, func(f func()) { go f() }, w.client.Requests.Chance)
	terms := Terms{Timing: usual, Values: context.Background(), Writes: make(chan struct{}, 1)}
	if change != nil {
		change(w.client, &terms)
	}
	w.lease = w.client.New(terms, Attempt{Version: "granted", Sent: w.now(), Lease: terms.Timing.Lease}, protocol.Record{Version: "granted"}, w)
	w.lease.Start()
	return w
}

// inWorld runs test in a bubble with a new world, and ends the lease when test has returned.
func inWorld(t *testing.T, change func(*Leases, *Terms), test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(change)
		defer func() { w.end() }() // w.end ends the current lease, because a test may have replaced the first one
		test(t, w)
	})
}

// manual is an argument of newWorld and inWorld. With this argument, the lease is not renewed in
// the background, but only by calls of renew.
func manual(_ *Leases, t *Terms) { t.Manual = true }

func (w *world) now() decide.Instant {
	w.mu.Lock()
	defer w.mu.Unlock()
	mono := time.Since(w.began)
	return decide.Instant{Mono: mono, Boot: mono + w.suspended}
}

func (w *world) end() { w.lease.End(errors.New("the test is over")) }

func (w *world) renew(ch Changes) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err := w.lease.Renew(ctx, ch)
	return err
}

func (w *world) Key(protocol.Key) (protocol.Item, error) { return item("key"), nil }
func (w *world) Schema() protocol.Schema                 { return protocol.Schema{Partition: "key"} }

func item(version string) protocol.Item {
	return protocol.Item{"key": &types.AttributeValueMemberS{Value: version}}
}

// set calls the function "change" with w.mu locked, so "change" may write fields of w at any time.
func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func (w *world) will(f fate)              { w.set(func() { w.fate = f }) }
func (w *world) suspend(d time.Duration)  { w.set(func() { w.suspended = d }) }
func (w *world) overwrite(version string) { w.set(func() { w.version = version }) }
func (w *world) shows() (version string)  { w.set(func() { version = w.version }); return version }
func (w *world) requests() (n int)        { w.set(func() { n = w.sent }); return n }
func (w *world) renewals() (n int)        { w.set(func() { n = min(w.renewed, w.extended) }); return n }

func (w *world) UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	var send fate
	w.set(func() {
		w.sent++
		send = w.fate
	})
	apply := func() (out protocol.Item, err error) {
		w.set(func() {
			if !slices.Contains(w.named, w.version) {
				err = &types.ConditionalCheckFailedException{Item: item(w.version)}
				return
			}
			w.version = w.next
			out = item(w.version)
		})
		return out, err
	}
	if send == nil {
		send = answered
	}
	out, err := send(apply)
	return &dynamodb.UpdateItemOutput{Attributes: out}, err
}

func (w *world) GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return &dynamodb.GetItemOutput{Item: item(w.shows())}, nil
}

func answered(apply func() (protocol.Item, error)) (protocol.Item, error) { return apply() }

func dropped(func() (protocol.Item, error)) (protocol.Item, error) { return nil, errLost }

func unheard(apply func() (protocol.Item, error)) (protocol.Item, error) {
	_, _ = apply()
	return nil, errLost
}

func refused(func() (protocol.Item, error)) (protocol.Item, error) {
	return nil, &smithy.GenericAPIError{Code: "AccessDeniedException", Fault: smithy.FaultClient}
}

func throttled(func() (protocol.Item, error)) (protocol.Item, error) {
	return nil, &types.ProvisionedThroughputExceededException{}
}

func (w *world) Renewal(a Attempt, versions []string, _ protocol.Changes) *protocol.Write {
	var spelled func()
	w.set(func() { w.next, w.named, spelled = a.Version, versions, w.spelled })
	if spelled != nil {
		spelled()
	}
	return protocol.NewUpdate(item("key"))
}

func (w *world) Decode(i protocol.Item) (protocol.Record, error) {
	return protocol.Record{Version: i["key"].(*types.AttributeValueMemberS).Value}, nil
}

func (w *world) Stands(i protocol.Item) bool { return i != nil }

func (w *world) Lost(loss Loss) {
	if w.lease.End(errLost) {
		w.set(func() { w.losses = append(w.losses, loss) })
		w.lease.WarnOfLoss()
	}
}

func (w *world) Extended()      { w.set(func() { w.extended++ }) }
func (w *world) Renewed(Report) { w.set(func() { w.renewed++ }) }
func (w *world) Failed(Report)  {}

func (w *world) lostBy(t *testing.T, want core.Reason) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.losses) != 1 || w.losses[0].Reason != want || w.lease.Cause() == nil || !w.lease.IsOver() {
		t.Errorf("losses %+v, want one for reason %v", w.losses, want)
	}
}

// elapse lets the time d pass in the bubble, and waits until all goroutines block.
func elapse(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// want fails the test unless got and want are deeply equal. The parameter "what" names the value.
func want[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// wantErr fails the test unless err matches want. The parameter "what" names the call that returned
// err. If want is nil, err must be nil.
func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

func TestExpiryIsReportedExactlyOnceWhenTrustInLeaseEnds(t *testing.T) {
	inWorld(t, manual, func(t *testing.T, w *world) {
		time.Sleep(18*time.Second - 1)
		wantErr(t, "lease an instant before its trust ends", w.lease.Ended(), nil)
		elapse(time.Nanosecond)
		w.lostBy(t, Expired) // only the lease's timer can have found the expiry, as no method was called since
		_ = w.lease.Ended()
		w.lostBy(t, Expired)
	})
}

func TestLeaseDoesNotExpireAsLongAsRenewalsSucceed(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		time.Sleep(time.Hour)
		if err := w.lease.Ended(); err != nil || w.renewals() < 700 {
			t.Errorf("%v after %d renewals", err, w.renewals())
		}
	})
}

func TestMethodTrustedUntilCountsFromSendTimeOfRenewal(t *testing.T) {
	inWorld(t, manual, func(t *testing.T, w *world) {
		time.Sleep(10 * time.Second)
		sent := w.now()
		w.will(func(apply func() (protocol.Item, error)) (protocol.Item, error) {
			time.Sleep(900 * time.Millisecond)
			want(t, "renewals in flight", w.client.Sending(), 1)
			return apply()
		})
		wantErr(t, "renew", w.renew(Changes{}), nil)
		want(t, "trusted until", w.lease.TrustedUntil(), sent.Add(18*time.Second))
		want(t, "renewals in flight", w.client.Sending(), 0)
	})
}

func TestExpiryDuringSuspendIsReportedAtFirstCallAfterwards(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		w.suspend(18 * time.Second) // timers do not run while the machine is suspended
		if err := w.lease.Ended(); err == nil {
			t.Error("trusted, although the boot clock shows that the lease has expired")
		}
		w.lostBy(t, Paused)
	})
}

func TestLossIsNotAttributedToPauseIfRenewalWaitedForSlot(t *testing.T) {
	var hang chan struct{}
	inWorld(t, func(c *Leases, _ *Terms) {
		hang = make(chan struct{})
		c.Scheduler = renewals.New(1, func(f func()) { go f() }, c.Requests.Chance)
		for range 4 { // these renewals hang, so no slot becomes free
			c.Scheduler.Add(renewals.Times{Every: time.Hour, Trust: time.Hour}, time.Hour, 1, func() renewals.Outcome {
				<-hang
				return renewals.Over
			})
		}
	}, func(t *testing.T, w *world) {
		defer close(hang)
		elapse(18 * time.Second)
		w.lostBy(t, Expired) // the reason is not Paused, because the renewal was due and waited for a slot
	})
}

func TestSuspendOfMachineShortensExpiryTimer(t *testing.T) {
	inWorld(t, manual, func(t *testing.T, w *world) {
		w.suspend(10 * time.Second)
		wantErr(t, "lease after the suspend", w.lease.Ended(), nil)
		elapse(8 * time.Second)
		// After the suspend, the call of Ended has set the lease's timer to an earlier time. So the
		// timer has fired, and the lease has been reported as lost.
		w.lostBy(t, Expired)
	})
}

func TestSuspendOfMachineShortensRemainingTimeOfLease(t *testing.T) {
	inWorld(t, manual, func(t *testing.T, w *world) {
		w.suspend(10 * time.Second)
		want(t, "remaining trust", w.lease.Remaining(), 8*time.Second)
		w.suspend(-10 * time.Second) // the boot clock is now behind, so the monotonic clock determines the trust
		want(t, "remaining trust", w.lease.Remaining(), 18*time.Second)
	})
}

func TestLateAnswerToRenewalDoesNotRestoreTrustInLostLease(t *testing.T) {
	inWorld(t, manual, func(t *testing.T, w *world) {
		time.Sleep(17 * time.Second)
		w.will(func(apply func() (protocol.Item, error)) (protocol.Item, error) {
			w.suspend(2 * time.Second) // the trust ends while the renewal is in flight
			return apply()
		})
		if err := w.renew(Changes{}); err == nil {
			t.Error("renewed by an attempt whose reply came after trust had ended")
		}
		if w.shows() == "granted" {
			t.Fatal("the renewal was not applied")
		}
		w.lostBy(t, Expired)
		want(t, "renewals reported", w.renewals(), 0)
	})
}

func TestTrustIsShortenedEvenIfRenewalWithShorterLeaseFails(t *testing.T) {
	for name, f := range map[string]fate{"without an answer": dropped, "refused": refused} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, manual, func(t *testing.T, w *world) {
				w.will(f)
				_ = w.renew(Changes{Lease: 10 * time.Second})
				want(t, "end of the shorter lease's trust", w.lease.TrustedUntil().Mono, 9*time.Second)
				w.will(nil)
				wantErr(t, "renew", w.renew(Changes{}), nil)
				want(t, "remaining trust", w.lease.Remaining(), 18*time.Second)
				w.will(f)
				_ = w.renew(Changes{Lease: 10 * time.Second})
				elapse(9 * time.Second)
				w.lostBy(t, Expired)
			})
		})
	}
}

func TestShortenedLeaseIsRenewedBeforeExpiry(t *testing.T) {
	for name, f := range map[string]fate{"answered": answered, "without an answer": unheard} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, nil, func(t *testing.T, w *world) {
				time.Sleep(4 * time.Second) // the lease was renewed a moment ago, at 3.75 s
				ctx, leave := context.WithCancel(context.Background())
				w.will(func(apply func() (protocol.Item, error)) (protocol.Item, error) {
					// Cancel the context of Renew, so that Renew sends no second attempt. All later
					// renewals are sent in the background.
					leave()
					w.will(nil)
					return f(apply)
				})
				_, _ = w.lease.Renew(ctx, Changes{Lease: 2 * time.Second})
				time.Sleep(time.Minute)
				wantErr(t, "lease", w.lease.Ended(), nil)
			})
		})
	}
}

func TestTrustIsLimitedByLaterUnansweredRenewal(t *testing.T) {
	inWorld(t, manual, func(t *testing.T, w *world) {
		earlier := Attempt{Version: "earlier", Sent: w.now(), Lease: 20 * time.Second}
		w.lease.pending.Add(earlier)
		w.lease.pending.Add(Attempt{Version: "later", Sent: w.now(), Lease: 10 * time.Second})
		w.lease.extend(earlier, protocol.Record{Version: "earlier"})
		want(t, "end of the later attempt's trust", w.lease.TrustedUntil().Mono, 9*time.Second)
		want(t, "versions that the record may show", w.lease.Versions(), []string{"earlier", "later"})
	})
}

func TestVersionsOfLeaseIncludeVersionOfRenewalInFlight(t *testing.T) {
	for name, f := range map[string]fate{"answered": answered, "unanswered": unheard} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, manual, func(t *testing.T, w *world) {
				w.will(f)
				w.spelled = func() {
					w.lease.End(errors.New("released"))
					want(t, "versions that the record may show", w.lease.Versions(), []string{"granted", w.next})
				}
				_ = w.renew(Changes{Record: protocol.Changes{SetData: true}})
				if got := w.lease.Versions(); !slices.Contains(got, w.shows()) {
					t.Errorf("the record shows %q, which is not one of %q", w.shows(), got)
				}
				want(t, "MayHaveStored", w.lease.MayHaveStored(), true)
			})
		})
	}
}

func TestRenewFailsInOutageButLeaseDoesNotExpire(t *testing.T) {
	inWorld(t, func(c *Leases, t *Terms) { c.ThroughOutage, t.Manual = true, true }, func(t *testing.T, w *world) {
		w.will(throttled)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := w.lease.Renew(ctx, Changes{}); err == nil || w.lease.Ended() != nil {
			t.Errorf("renewed with %v, ended by %v", err, w.lease.Ended())
		}
	})
}

func TestChildLeaseExpiresAtSameTimeAsParentLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent := newWorld(nil)
		child := newWorld(func(_ *Leases, terms *Terms) { terms.Parent = parent.lease })
		// A failed renewal of the child's record neither extends nor ends the trust in the child.
		child.will(dropped)
		time.Sleep(time.Hour)
		if err := child.lease.Ended(); err != nil || child.lease.TrustedUntil() != parent.lease.TrustedUntil() {
			t.Errorf("%v, trusted until %v, parent until %v", err, child.lease.TrustedUntil(), parent.lease.TrustedUntil())
		}
		child.will(nil)
		parent.will(dropped)
		time.Sleep(18 * time.Second)
		if err := child.lease.Ended(); err == nil {
			t.Error("trusted, although the parent has ended")
		}
		if loss, lost := child.lease.Outlived(); !lost || loss.Reason != WithParent || !errors.Is(loss.Err, errLost) {
			t.Errorf("Outlived returned %+v (%v), want a loss with the parent", loss, lost)
		}
		parent.lostBy(t, Expired)
		child.lostBy(t, WithParent)
	})
}

func TestDueRenewalIsSentWhenPreviousRenewalEnds(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		time.Sleep(time.Second)
		w.will(func(func() (protocol.Item, error)) (protocol.Item, error) {
			time.Sleep(5 * time.Second) // the next renewal in the background becomes due meanwhile
			return nil, errLost
		})
		_ = w.renew(Changes{}) // this renewal by the caller fails
		w.will(answered)
		synctest.Wait()
		want(t, "requests", w.requests(), 2)
		want(t, "renewals reported", w.renewals(), 1)
		time.Sleep(time.Minute)
		wantErr(t, "lease", w.lease.Ended(), nil)
	})
}

func TestBlockedRenewalDoesNotDelayRenewalOfOtherLease(t *testing.T) {
	for name, takes := range map[string]func(w *world, turn chan struct{}){
		"another renewal": func(w *world, _ chan struct{}) {
			w.will(func(func() (protocol.Item, error)) (protocol.Item, error) {
				w.will(answered) // a renewal that begins as the test ends is answered
				time.Sleep(10 * time.Second)
				return nil, errLost
			})
			_ = w.renew(Changes{})
		},
		"a transaction": func(_ *world, turn chan struct{}) {
			turn <- struct{}{}
			time.Sleep(10 * time.Second)
			<-turn
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			var turn chan struct{}
			w := newWorld(func(c *Leases, terms *Terms) {
				turn = terms.Writes
				c.Scheduler = renewals.New(1, func(f func()) { go f() }, c.Requests.Chance)
			})
			defer w.end()
			// The first lease's renewal is due after 3.75 s. It must then wait for the other renewal, or for
			// the transaction, that the function "takes" has begun. Meanwhile it must free the scheduler's
			// only slot: the other lease is due 100 ms later, and must get this slot immediately.
			time.Sleep(100 * time.Millisecond)
			var sent []time.Duration
			other := w.client.Scheduler.Add(renewals.Times{Every: usual.Every, Trust: usual.Trust()}, usual.Trust(), 0, func() renewals.Outcome {
				sent = append(sent, time.Since(w.began))
				return renewals.Failed
			})
			takes(w, turn) // the first lease is due after 3.75 s
			w.client.Scheduler.Remove(other)
			if len(sent) == 0 || sent[0] != 3850*time.Millisecond {
				t.Errorf("%s: the other lease was sent after %v", name, sent)
			}
		})
	}
}

func TestLossDuringBlockedRenewalIsReportedAsExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turn chan struct{}
		w := newWorld(func(_ *Leases, terms *Terms) { turn = terms.Writes })
		// Simulate a transaction that does not end. The next renewal waits for the transaction.
		turn <- struct{}{}
		elapse(5 * time.Second)
		w.suspend(time.Hour)
		_ = w.lease.Ended()
		w.lostBy(t, Expired)
	})
}

func TestLeaseWithManualRenewalIsNotRenewedInBackground(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		w.lease.ByHand()
		elapse(18 * time.Second)
		want(t, "renewals", w.requests(), 0)
		w.lostBy(t, Expired) // the reason is not Paused, because ByHand has stopped the renewals in the background
	})
}

// notBegun returns a world with a new lease whose Start was not called.
func notBegun(change func(*Leases, *Terms)) *world {
	w := newWorld(change)
	w.end()
	terms := w.lease.terms
	w.lease = w.client.New(terms, Attempt{Version: "granted", Sent: w.now(), Lease: terms.Timing.Lease}, protocol.Record{Version: "granted"}, w)
	return w
}

func TestLeaseCanBeCheckedAndRenewedBeforeItIsStarted(t *testing.T) {
	for name, look := range map[string]func(w *world) error{
		"checked": func(w *world) error { return w.lease.Ended() },
		"renewed": func(w *world) error { return w.renew(Changes{}) },
		"warned at once": func(w *world) error {
			looked := make(chan error)
			w.lease.Warn(&Warning{Left: math.MaxInt64, Call: func() { looked <- w.lease.Ended() }})
			return <-looked
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := notBegun(nil)
				defer func() { w.end() }()
				wantErr(t, "lease before its start", look(w), nil)
				w.lease.Start()
				elapse(time.Minute)
				if err := w.lease.Ended(); err != nil || w.sent < 10 {
					t.Errorf("renewed %d times in a minute: %v", w.sent, err)
				}
			})
			synctest.Test(t, func(t *testing.T) {
				w := notBegun(nil)
				time.Sleep(time.Minute) // the reply to the grant took a minute
				wantErr(t, "lease that has expired before its start", look(w), errLost)
				w.lease.Start()
				w.lostBy(t, Paused)
			})
		})
	}
}
