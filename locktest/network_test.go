package locktest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/locktest"
)

// put writes an item that is not a lock record.
func put(t *testing.T, env *locktest.Env, key string) {
	t.Helper()
	lab.Must(env.DB().PutItem(t.Context(), &dynamodb.PutItemInput{
		TableName: aws.String("locks"), Item: map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: key}},
	}))(t)
}

func TestDisconnectedClientLosesLockBeforeNextGrant(t *testing.T) {
	inBubble(t, func(t *testing.T, env *locktest.Env) {
		first, second := env.Client(leasehold.Config{}), env.Client(leasehold.Config{})
		lock := acquire(t, first, "k")
		env.Disconnect(first)
		began := time.Now()
		next := acquire(t, second, "k")
		var lost *leasehold.LostError
		if !errors.As(lock.Err(), &lost) || lost.Reason != leasehold.LostExpired || lost.At.After(time.Now()) {
			t.Errorf("the first: %v", lock.Err())
		}
		if took := time.Since(began); took < 18*time.Second || took > 21*time.Second {
			t.Errorf("the second waited for %v", took)
		}
		release(t, next)
	})
}

func TestLockStaysHeldIfClientReconnectsWithinLease(t *testing.T) {
	withClient(t, func(t *testing.T, env *locktest.Env, locks *leasehold.Client) {
		lock := acquire(t, locks, "k")
		env.Disconnect(locks)
		time.Sleep(12 * time.Second)
		env.Reconnect(locks)
		time.Sleep(time.Hour)
		lab.OK(t, lock.Err())
		release(t, lock)
	})
}

func TestRequestsOfDisconnectedClientAreLost(t *testing.T) {
	withClient(t, func(t *testing.T, env *locktest.Env, locks *leasehold.Client) {
		env.Disconnect(locks)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		lab.WantErr(t, "acquire", lab.ErrorOf(locks.Acquire(ctx, "k")), context.DeadlineExceeded)
		out := lab.Must(env.DB().Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("locks")}))(t)
		lab.Want(t, "items of the table", len(out.Items), 0)
	})
}

func TestReconnectMakesClientRetryImmediately(t *testing.T) {
	withClient(t, func(t *testing.T, env *locktest.Env, locks *leasehold.Client) {
		env.Disconnect(locks)
		began := time.Now()
		granted := make(chan time.Duration)
		go func() {
			lab.WantErr(t, "do", locks.Do(t.Context(), "k", nothing), nil)
			granted <- time.Since(began)
		}()
		synctest.Wait() // wait until the waiter's request is in flight; without an answer, it stays in flight for three seconds
		env.Reconnect(locks)
		lab.WantRange(t, "granted after", <-granted, 0, time.Second)
	})
}

func TestDisconnectAffectsAllClientsByDefault(t *testing.T) {
	inBubble(t, func(t *testing.T, env *locktest.Env) {
		before := env.Client(leasehold.Config{})
		lock, held := acquire(t, before, "k"), env.Hold("held")
		env.Disconnect()
		later, thief, heldLater := env.Client(leasehold.Config{}), env.Steal("stolen"), env.Hold("held later")
		for name, locks := range map[string]*leasehold.Client{"before": before, "later": later} {
			lab.WantFailed(t, "a client created "+name, lab.ErrorOf(locks.Get(t.Context(), "k")))
		}
		time.Sleep(time.Minute)
		for name, l := range map[string]*leasehold.Lock{"of the code under test": lock, "of Hold": held, "of a later Hold": heldLater, "of Steal": thief} {
			lab.WantErr(t, "the lock "+name, l.Err(), leasehold.ErrLost)
		}
		env.Reconnect(later)
		lab.WantErr(t, "reconnected client", lab.ErrorOf(later.Get(t.Context(), "k")), nil)
		lab.WantFailed(t, "another client that was not reconnected", lab.ErrorOf(before.Get(t.Context(), "k")))
		env.Reconnect()
		for _, locks := range []*leasehold.Client{before, env.Client(leasehold.Config{})} {
			lab.WantErr(t, "client after Reconnect", lab.ErrorOf(locks.Get(t.Context(), "k")), nil)
		}
	})
}

func TestDisconnectAffectsOnlyGivenClients(t *testing.T) {
	inBubble(t, func(t *testing.T, env *locktest.Env) {
		one, other := env.Client(leasehold.Config{}), env.Client(leasehold.Config{})
		env.Disconnect(one)
		env.Disconnect(one) // has no effect, because the client is already disconnected
		release(t, acquire(t, other, "k"))
		lab.WantFailed(t, "the disconnected client", lab.ErrorOf(one.TryAcquire(t.Context(), "k")))
		env.Reconnect(one)
		env.Reconnect(one)
		release(t, acquire(t, one, "k"))
	})
}

func TestDisconnectRejectsClientOfAnotherEnv(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProbe(t.Context())
		env, other := locktest.New(p), locktest.New(t)
		for _, fn := range []func(...*leasehold.Client){env.Disconnect, env.Reconnect} {
			for _, c := range []*leasehold.Client{other.Client(leasehold.Config{}), nil} {
				p.fails(t, func() { fn(c) }, "does not belong to this Env")
			}
		}
		p.end()
	})
}
