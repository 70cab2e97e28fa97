package ambiguity

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// This file contains two kinds of functions that act as another client. Some write before a
// request of the operation arrives. The others make a call after the operation has
// returned.

// stolen returns a function that makes another client hold the key.
func stolen(key string) func(*trial, *lab.Request) {
	return func(x *trial, _ *lab.Request) {
		if item := x.Item(key); item == nil || lab.Text(item, "isReleased") != "" {
			_, _ = x.thief.TryAcquire(context.Background(), key, leasehold.WithoutRenewal())
			return
		}
		x.others++
		v := fmt.Sprint("another's ", x.others)
		x.Update(key, map[string]types.AttributeValue{
			"ownerName": lab.Str("thief/00000000000000000000000000000000"), "grantId": lab.Str(v), "recordVersionNumber": lab.Str(v),
			"session": nil, "leaseDuration": lab.Str("20000"),
		})
	}
}

// doneByAnother stores a mark that another client has done the work. If an attempt of the
// trial's client was applied, the other client first takes the key from it.
func doneByAnother(x *trial, r *lab.Request) {
	stolen("job")(x, r)
	x.others++
	x.Update("job", map[string]types.AttributeValue{
		"isReleased": lab.Str("1"), "fencingToken": lab.Num(fmt.Sprint(1<<51 + x.others)),
		"lastDone": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{
			"once": lab.Str("it"), "by": lab.Str("thief/00000000000000000000000000000000"), "at": lab.Num("1"), "fencingToken": lab.Num(fmt.Sprint(1<<51 + x.others)),
		}},
	})
}

// renewed returns a function that renews the record of another client, so that it has a
// new version. If the record is no longer that client's, the function makes another
// client hold the key, as stolen does.
func renewed(key string) func(*trial, *lab.Request) {
	return func(x *trial, r *lab.Request) {
		if !strings.HasPrefix(lab.Text(x.Item(key), "ownerName"), "other/") {
			stolen(key)(x, r)
			return
		}
		x.Update(key, map[string]types.AttributeValue{"recordVersionNumber": lab.Str(protocol.NewVersion())})
	}
}

// shut makes the condition of NoteIf fail: it removes the attribute "open",
// which the condition requires.
func shut(x *trial, _ *lab.Request) {
	remove := &types.Update{
		TableName: lab.Note("a", "").Update.TableName, Key: lab.WorkKey("a"),
		UpdateExpression: aws.String("REMOVE #o"), ExpressionAttributeNames: map[string]string{"#o": "open"},
	}
	if err := x.Transact(types.TransactWriteItem{Update: remove}); err != nil {
		x.T.Error(err)
	}
}

var sessionKey = regexp.MustCompile(`leasehold/session/[a-z2-7]{26}`)

// session returns the session key that a request contains.
func session(r *lab.Request) string { return string(sessionKey.Find(r.Body)) }

func aboutSession(c lab.Call) bool {
	return !c.Reads() && slices.ContainsFunc(c.Keys(), func(k string) bool { return strings.HasPrefix(k, "leasehold/session/") })
}

// taken creates a row of another client under the id that the request would give to a
// new session.
func taken(x *trial, r *lab.Request) {
	x.Put(map[string]types.AttributeValue{"key": lab.Str(session(r)), "kind": lab.Str("another's")})
}

// keeps returns a function that checks that the lock is still held, and then releases it.
// The lock is another client's.
func keeps(lock *leasehold.Lock) func() error {
	return func() error {
		return errors.Join(lock.Err(), lock.Renew(context.Background()), lock.Release(context.Background()))
	}
}

// asks returns a function that creates a client that has read nothing yet, and acquires
// a lock with it by the call acquire.
func asks(acquire func(ctx context.Context, x *trial, c *leasehold.Client) (*leasehold.Lock, error)) func(context.Context, *trial) (*leasehold.Lock, func() error, error) {
	return func(ctx context.Context, x *trial) (*leasehold.Lock, func() error, error) {
		lock, err := acquire(ctx, x, x.rival())
		if err != nil {
			return nil, nil, err
		}
		return lock, keeps(lock), nil
	}
}

var (
	askForJob = asks(func(ctx context.Context, _ *trial, c *leasehold.Client) (*leasehold.Lock, error) {
		return c.Acquire(ctx, "job")
	})
	askForPermit = asks(func(ctx context.Context, x *trial, c *leasehold.Client) (*leasehold.Lock, error) {
		return x.semaphore(c).Acquire(ctx)
	})
)

func askForAll(ctx context.Context, x *trial) (*leasehold.Lock, func() error, error) {
	g, err := x.rival().AcquireAll(ctx, leasehold.Keys("x", "y"))
	if err != nil {
		return nil, nil, err
	}
	// This is the lock that was taken over or, if none was taken over, the first lock.
	longest := g.Locks()[0]
	for _, lock := range g.Locks() {
		if _, over := lock.TookOver(); over {
			longest = lock
		}
	}
	return longest, func() error { return errors.Join(g.Err(), g.Release(context.Background())) }, nil
}
