//go:build linux

package main

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/proof/interop/peers"
)

// everyType contains one attribute of each DynamoDB type.
var everyType = peers.Attributes{
	"s":    &types.AttributeValueMemberS{Value: "text"},
	"n":    &types.AttributeValueMemberN{Value: "1.5"},
	"b":    &types.AttributeValueMemberB{Value: []byte("bytes")},
	"bool": &types.AttributeValueMemberBOOL{Value: true},
	"null": &types.AttributeValueMemberNULL{Value: true},
	"ss":   &types.AttributeValueMemberSS{Value: []string{"a", "b"}},
	"ns":   &types.AttributeValueMemberNS{Value: []string{"1", "2"}},
	"bs":   &types.AttributeValueMemberBS{Value: [][]byte{[]byte("x")}},
	"l":    &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberS{Value: "e"}}},
	"m": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{
		"in": &types.AttributeValueMemberN{Value: "2"},
	}},
}

var (
	acquire   = peers.Request{Do: "acquire", Key: "k"}
	heartbeat = peers.Request{Do: "heartbeat"}
	release   = peers.Request{Do: "release"}
	data      = []byte("some data")
	yes       = true
)

// The function "with" copies the request r, modifies the copy with "change", and returns the copy.
func with(r peers.Request, change func(r *peers.Request)) peers.Request {
	change(&r)
	return r
}

func cases() []kase {
	cases := javaCases()
	cases = append(cases, pythonCases()...)
	cases = append(cases, dlmCases()...)
	return append(cases, mutexCases()...)
}

func javaCases() []kase {
	settings := peers.Settings{Owner: "somebody", Lease: 20 * time.Second, Poll: 100 * time.Millisecond}
	sorted := settings
	sorted.SortKey = "part"
	withData := with(acquire, func(r *peers.Request) { r.Data = data })
	kept := []peers.Request{withData, with(release, func(r *peers.Request) { r.Keep = &yes })}
	oursReleased := []peers.Request{
		with(acquire, func(r *peers.Request) {
			r.Data, r.Attributes = data, peers.Attributes{"colour": &types.AttributeValueMemberS{Value: "red"}}
		}),
		release,
	}
	oursHeld := oursReleased[:1]
	of := func(name, what, state string, steps ...peers.Request) kase {
		return kase{peer: peers.AWSLabs, name: name, what: what, settings: settings, state: state, steps: steps}
	}
	over := func(c kase, ours []peers.Request) kase { c.ours = ours; return c }
	inSorted := func(c kase) kase { c.settings = sorted; return c }
	update := with(acquire, func(r *peers.Request) { r.Update = true })
	patient := func(r peers.Request) peers.Request { r.Wait = time.Minute; return r }
	return []kase{
		of("acquired", "acquired", "held", acquire),
		of("acquired-with-data", "acquired with data", "held", withData),
		of("acquired-with-attributes", "acquired with additional attributes of every type", "held",
			with(acquire, func(r *peers.Request) { r.Attributes = everyType })),
		inSorted(of("acquired-with-sort-key", "acquired in a table with a sort key", "held",
			with(acquire, func(r *peers.Request) { r.SortValue = "one" }))),
		of("acquired-by-update", "acquired with updateExistingLockRecord where there was no record", "held", update),
		of("heartbeat", "a heartbeat", "held", acquire, heartbeat),
		of("heartbeat-with-data", "a heartbeat that sets data", "held", acquire,
			with(heartbeat, func(r *peers.Request) { r.Data = data })),
		of("heartbeat-deleting-data", "a heartbeat that deletes the data", "held", withData,
			with(heartbeat, func(r *peers.Request) { r.DeleteData = true })),
		of("heartbeat-with-lease", "a heartbeat with another lease", "held", acquire,
			with(heartbeat, func(r *peers.Request) { r.Lease = 45 * time.Second })),
		of("released", "released", "absent", acquire, release),
		of("released-kept", "released with deleteLock false", "released", kept...),
		of("released-kept-by-acquire", "released after an acquire with deleteLockOnRelease false", "released",
			with(acquire, func(r *peers.Request) { r.KeepOnRelease = true }), release),
		of("released-kept-with-data", "released with deleteLock false and data", "released", withData,
			with(release, func(r *peers.Request) { r.Keep, r.Data = &yes, []byte("last words") })),
		of("acquired-over-released", "acquired where a record with data was released", "held", append(kept, acquire)...),
		of("acquired-over-released-keeping-data", "the same with replaceData false", "held",
			append(kept, with(acquire, func(r *peers.Request) { r.KeepData = true }))...),
		of("acquired-over-released-by-update", "the same with updateExistingLockRecord", "held", append(kept, update)...),
		of("acquired-over-released-consistently", "the same with acquireReleasedLocksConsistently", "held",
			append(kept, with(acquire, func(r *peers.Request) { r.Consistently = true }))...),
		over(of("acquired-over-ours-released", "acquired where leasehold's native layout had released a record with data and an attribute", "held", acquire), oursReleased),
		over(of("acquired-over-ours-released-by-update", "the same with updateExistingLockRecord", "held", update), oursReleased),
		over(of("acquired-over-ours-collectable-by-update", "acquired with updateExistingLockRecord where leasehold's native layout had released a record that TTL may collect", "held", update), []peers.Request{acquire, release}),
		over(of("acquired-over-ours-dead", "acquired where a holder with leasehold's native layout had died", "held", patient(acquire)), oursHeld),
		over(of("acquired-over-ours-dead-by-update", "the same with updateExistingLockRecord", "held", patient(update)), oursHeld),
		over(of("released-kept-after-ours-by-update", "released with deleteLock false after such an update", "released",
			update, with(release, func(r *peers.Request) { r.Keep = &yes })), oursReleased),
	}
}

func pythonCases() []kase {
	settings := peers.Settings{Owner: "somebody", Lease: 30 * time.Second, Heartbeat: 5 * time.Second}
	quick := settings
	quick.Heartbeat = 300 * time.Millisecond
	fraction := settings
	fraction.Lease, fraction.Heartbeat = 2500*time.Millisecond, 500*time.Millisecond
	of := func(name, what, state string, steps ...peers.Request) kase {
		return kase{peer: peers.PythonDynamoDBLock, name: name, what: what, settings: settings, state: state, steps: steps}
	}
	renewed := of("heartbeat", "a heartbeat", "held", acquire)
	renewed.settings, renewed.heartbeat = quick, true
	half := of("acquired-for-a-fraction", "acquired for a lease that is not whole seconds", "held", acquire)
	half.settings = fraction
	return []kase{
		of("acquired", "acquired", "held", acquire),
		of("acquired-with-attributes", "acquired with additional attributes of every type", "held",
			with(acquire, func(r *peers.Request) { r.Attributes = everyType })),
		of("acquired-with-sort-key", "acquired with a sort key", "held",
			with(acquire, func(r *peers.Request) { r.SortValue = "one" })),
		half,
		renewed,
		of("released", "released", "absent", acquire, release),
	}
}

func dlmCases() []kase {
	settings := peers.Settings{Lease: 10 * time.Second}
	of := func(name, what, state string, steps ...peers.Request) kase {
		return kase{peer: peers.DynamoDLM, name: name, what: what, settings: settings, state: state, steps: steps}
	}
	third := with(acquire, func(r *peers.Request) { r.Slots = 3 })
	return []kase{
		of("acquired", "acquired", "held", acquire),
		of("acquired-slots", "acquired three times with concurrency 3", "held", third, third, third),
		of("released", "released", "absent", acquire, release),
	}
}

func mutexCases() []kase {
	settings := peers.Settings{Owner: "somebody", Lease: 30 * time.Second}
	of := func(name, what, state string, steps ...peers.Request) kase {
		return kase{peer: peers.DyndbMutex, name: name, what: what, settings: settings, state: state, steps: steps}
	}
	return []kase{
		of("acquired", "acquired", "held", acquire),
		of("released", "released", "released", acquire, release),
		of("acquired-over-released", "acquired again after a release", "held", acquire, release, acquire),
	}
}
