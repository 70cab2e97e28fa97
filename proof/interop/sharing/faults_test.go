//go:build linux

package sharing

import (
	"math"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/proof/interop/engines"
	"github.com/leasehold-go/leasehold/proof/interop/peers"
)

// The function "with" is like matches, but runs the scenario only for the given peer library.
func with(t *testing.T, peer peers.Peer, lease time.Duration, scenario func(t *testing.T, m match)) {
	for _, e := range engines.All() {
		t.Run(e.Name+"/"+peer.Name, func(t *testing.T) {
			t.Parallel()
			m := match{
				peer: peer, ours: peers.Ours(peer.Layout), server: engines.Run(t, e), poll: 100 * time.Millisecond,
				settings: peers.Settings{Table: "locks", Lease: lease},
			}
			lab.OK(t, peer.CreateTable(peers.Patiently(t), m.server, m.settings))
			scenario(t, m)
		})
	}
}

// If DynamoDB denies the write of a dyndb-mutex client, the client's acquire still returns success.
// The client's caller may then work although leasehold holds the lock. Leasehold must keep the
// lock, and the record must still name leasehold as the holder.
func TestDyndbMutexReportsSuccessDespiteDeniedWrite(t *testing.T) {
	with(t, peers.DyndbMutex, time.Hour, func(t *testing.T, m match) {
		ours := m.run(t, m.ours)
		held := ours.Acquire(t, "k")
		before := m.item(t, "k")
		peer, front := m.runBehind(t, m.peer)
		front.Deny("PutItem")
		lab.WantErr(t, "acquire, unless the fault is gone", lab.ErrorOf(peer.Ask(t, peers.Request{Do: "acquire", Key: "k"})), nil)
		lab.Want(t, "leasehold holds the lock", ours.Held(t, held), true)
		lab.Want(t, "the holder", text(m.item(t, "k"), "holder"), text(before, "holder"))
	})
}

// The Python statement "with lock:" of python_dynamodb_lock swallows exceptions that are
// raised inside its block.
func TestPythonDynamoDBLockSwallowsExceptionsOfCaller(t *testing.T) {
	with(t, peers.PythonDynamoDBLock, time.Hour, func(t *testing.T, m match) {
		peer, ours := m.run(t, m.peer), m.run(t, m.ours)
		held := peer.Acquire(t, "k")
		lab.Want(t, "fault is gone: the exception left the block", peer.Must(t, peers.Request{Do: "with", Lock: held}).Raised, false)
		ours.Acquire(t, "k") // succeeds, because the end of the Python block has released the key
	})
}

// If a dynamo-dlm lock object has tried to acquire a held key, it can never acquire that key, even
// after the key is released.
func TestDynamoDLMLockObjectIsUnusableAfterFailedAcquire(t *testing.T) {
	with(t, peers.DynamoDLM, time.Hour, func(t *testing.T, m match) {
		peer, ours := m.run(t, m.peer), m.run(t, m.ours)
		held := ours.Acquire(t, "k")
		refused := peer.Send(peers.Request{Do: "acquire", Key: "k"})
		lab.WantErr(t, "reply", lab.ErrorOf(refused.Await(t)), peers.ErrHeld)
		ours.Refused(t, "k")
		ours.Release(t, held)
		_, err := peer.Ask(t, peers.Request{Do: "acquire", Key: "k", Again: refused.ID})
		lab.WantText(t, "the fault", err, "Cannot reacquire")
		ours.Acquire(t, "k") // leasehold can still acquire the key; only the dynamo-dlm lock object is stuck
	})
}

// A dyndb-mutex object can release any lock whose owner equals the object's name, even if another
// object holds it. No object can release a lock of leasehold, because the owner that leasehold
// writes is not the name of any object.
func TestDyndbMutexCannotReleaseLockOfLeasehold(t *testing.T) {
	with(t, peers.DyndbMutex, time.Hour, func(t *testing.T, m match) {
		one, other, ours := m.run(t, m.peer), m.run(t, m.peer), m.run(t, m.ours)
		byName := peers.Request{Do: "release", Key: "k", Owner: "name"}
		one.Must(t, peers.Request{Do: "acquire", Key: "k", Owner: "name"})
		ours.Refused(t, "k")
		other.Must(t, byName)
		held := ours.Acquire(t, "k")

		lab.WantErr(t, "release of leasehold's lock by an owner name", lab.ErrorOf(other.Ask(t, byName)), peers.ErrLost)
		one.Refused(t, "k")
		ours.Release(t, held)
	})
}

// dyndb-mutex stores the TTL in milliseconds. DynamoDB reads the number as seconds, which gives a
// time far in the future, so DynamoDB never deletes the record. Leasehold must store seconds.
func TestLeaseholdTTLIsInSecondsUnlikeDyndbMutex(t *testing.T) {
	with(t, peers.DyndbMutex, time.Hour, func(t *testing.T, m match) {
		peer, ours := m.run(t, m.peer), m.run(t, m.ours)
		year := time.Now().Add(365 * 24 * time.Hour).Unix()
		peer.Acquire(t, "theirs")
		lab.WantRange(t, "the peer's ttl, unless the fault is gone", integer(t, m.item(t, "theirs"), "ttl"), year, math.MaxInt64)
		ours.Acquire(t, "ours")
		lab.WantRange(t, "our ttl in seconds", integer(t, m.item(t, "ours"), "ttl"), time.Now().Unix(), year)
	})
}

// dynamo-dlm truncates the current time to whole seconds before it adds the lease, so its lock
// expires too early. Leasehold must round the expiry up instead.
func TestLeaseholdRoundsExpiryUpUnlikeDynamoDLM(t *testing.T) {
	with(t, peers.DynamoDLM, 10*time.Second, func(t *testing.T, m match) {
		ours := m.run(t, m.ours)
		before := time.Now()
		ours.Acquire(t, "k")
		if end := expiry(t, m, "k"); end.Before(before.Add(m.settings.Lease)) {
			t.Errorf("the lock expires at %v, %v after the request", end, end.Sub(before))
		}
	})
}

// A release by leasehold must delete the record. If the whole record remained, python_dynamodb_lock
// would wait until the lease expires. If only some attributes of the record remained,
// python_dynamodb_lock would return an error.
func TestReleaseInPythonLayoutDeletesRecord(t *testing.T) {
	with(t, peers.PythonDynamoDBLock, 6*time.Second, func(t *testing.T, m match) {
		peer, ours := m.run(t, m.peer), m.run(t, m.ours)
		held := ours.Acquire(t, "k")
		collected := integer(t, m.item(t, "k"), "expiry_time")
		tick(t, "a renewal that changes the TTL", func() bool {
			return integer(t, m.item(t, "k"), "expiry_time") > collected
		})
		peer.Refused(t, "k")
		ours.Release(t, held)
		lab.Want(t, "item after the release", m.item(t, "k"), nil)
		peer.Acquire(t, "k")

		// This holder does not renew, because a renewal would restore the attribute that the test
		// removes below.
		peers.Run(t, m.ours, m.server.Endpoint, m.settings).Acquire(t, "damaged")
		item := m.item(t, "damaged")
		lab.Must(m.server.Client().UpdateItem(peers.Patiently(t), &dynamodb.UpdateItemInput{
			TableName:        aws.String(m.settings.Table),
			Key:              map[string]types.AttributeValue{"lock_key": item["lock_key"], "sort_key": item["sort_key"]},
			UpdateExpression: aws.String("REMOVE expiry_time"),
		}))(t)
		lab.WantErr(t, "without expiry_time", lab.ErrorOf(peer.Ask(t, peers.Request{Do: "acquire", Key: "damaged"})), peers.ErrFailed)
	})
}

// The Java client can acquire a key by updating its record, which then still contains the token of
// leasehold's previous grant. While the Java client holds the key, Get must not return this token.
// Leasehold's next token must be higher.
func TestGetReturnsNoTokenForGrantOfJavaClient(t *testing.T) {
	with(t, peers.AWSLabs, time.Hour, func(t *testing.T, m match) {
		peer, ours := m.run(t, m.peer), m.run(t, m.ours)
		first := ours.Must(t, peers.Request{Do: "acquire", Key: "k"})
		ours.Release(t, first.ID)
		theirs := peer.Must(t, peers.Request{Do: "acquire", Key: "k", Update: true})
		lab.Want(t, "token in the record", integer(t, m.item(t, "k"), "fencingToken"), first.Record.Token)
		now := ours.Must(t, peers.Request{Do: "get", Key: "k"}).Record
		if now.Token != 0 || now.Owner != theirs.Record.Owner {
			t.Errorf("read token %d and owner %s, want no token and owner %s", now.Token, now.Owner, theirs.Record.Owner)
		}
		peer.Release(t, theirs.ID) // this release by the Java client deletes the record
		second := ours.Must(t, peers.Request{Do: "acquire", Key: "k"})
		if second.Record.Token <= first.Record.Token {
			t.Errorf("token %d after %d", second.Record.Token, first.Record.Token)
		}
	})
}
