package layouttest

import (
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-go/leasehold"
)

func oddChecks() []check {
	return []check{
		{claim: "an unusual record of a peer is read as held", hold: oddIsHeld},
		{claim: "an unusual record of a dead peer is taken over", hold: oddDies, exact: true},
		{claim: "an unusual record of a peer can be broken", hold: oddIsBroken},
		{claim: "a break of a nameless peer's grant does not change the next grant", hold: namelessIsBroken},
		{claim: "a nameless peer that renews counts as one holder", hold: namelessRenews, exact: true},
	}
}

// odd is an unusual but valid record. A peer (a client of another lock library) may write such a
// record, depending on the peer's configuration.
type odd struct {
	what   string
	change Item
	// Time from the last renewal until the holder is dead. Zero means the lease in the record, and
	// a negative value means that the holder never counts as dead.
	dies time.Duration
}

const (
	never = -1
	soon  = time.Millisecond // a lease so short that its holder is dead when the record is read a second time

	// Owner name of a peer, which is a client of another lock library. It has the form of the
	// owner names that leasehold writes.
	lookalike = "team/abcdefghijklmnopqrstuvwxyz"
	aUUID     = "6fa459ea-ee8a-4ca4-894e-db77e160355e"
	another   = "16fd2706-8baf-433b-82eb-8c7fada847da"
)

// oddities returns the unusual records that a client of the layout's lock library may write.
func (s Subject) oddities() []odd {
	carried := Item{"grantId": text(aUUID), "fencingToken": decimal("42"), "grantedAt": decimal("1764230400000")}
	java := []odd{
		{what: "an empty owner", change: Item{"ownerName": text("")}},
		{what: "an owner that looks like ours", change: Item{"ownerName": text(lookalike)}},
		{what: "an owner and a version that look like ours", change: Item{"ownerName": text(lookalike), "recordVersionNumber": text(another)}},
		{what: "empty data", change: Item{"data": binary("")}},
		{what: "a user attribute named session", change: Item{"session": decimal("5")}},
		{what: "a user attribute named expiresAt", change: Item{"expiresAt": text("tomorrow")}},
		{what: "an owner that looks like ours, and a user attribute named grantId", change: Item{"ownerName": text(lookalike), "recordVersionNumber": text(another), "grantId": text("batch-7")}},
	}
	switch s.Layout.Name() {
	case "native", "awslabs":
		return append(java,
			odd{what: "a lease of 0", change: Item{"leaseDuration": text("0")}, dies: soon},
			odd{what: "a lease below 0", change: Item{"leaseDuration": text("-5")}, dies: soon},
			odd{what: "an endless lease", change: Item{"leaseDuration": text("9223372036854775807")}, dies: never},
			odd{what: "our attributes, carried by an update", change: carried},
		)
	case "dynamolock":
		ofOurs := with(carried, Item{
			"ownerName":           text(lookalike),
			"recordVersionNumber": text("1795274561341567000:MZXW6YTBOI2DGNRVGQ3TQOJQGEZDGNBVGY3TQOLBMJRWIZLGM5UA"),
		})
		return append(java,
			odd{what: "a lease of 0", change: Item{"leaseDuration": text("0s")}, dies: soon},
			odd{what: "a lease below 0", change: Item{"leaseDuration": text("-1h0m0s")}, dies: soon},
			odd{what: "a lease below a millisecond", change: Item{"leaseDuration": text("1.5µs")}, dies: soon},
			odd{what: "an endless lease", change: Item{"leaseDuration": text("2562047h47m16.854775807s")}, dies: never},
			odd{what: "an owner that looks like ours, and our attributes copied", change: ofOurs},
		)
	case "python-dynamodb-lock":
		return []odd{
			{what: "an owner that looks like ours", change: Item{"owner_name": text(lookalike)}},
			{what: "an owner and a version that look like ours", change: Item{"owner_name": text(lookalike), "record_version_number": text(another)}},
			{what: "a lease of 0", change: Item{"lease_duration": decimal("0")}, dies: soon},
			{what: "a lease below 0", change: Item{"lease_duration": decimal("-1.5")}, dies: soon},
			{what: "a lease of a fraction of a second", change: Item{"lease_duration": decimal("0.1")}, dies: 100 * time.Millisecond},
			{what: "a lease in another notation", change: Item{"lease_duration": decimal("1.0e0")}},
			{what: "an endless lease", change: Item{"lease_duration": decimal("86399999999999.999999")}, dies: never},
			{what: "a TTL time in the past", change: Item{s.ttl: decimal("-5")}},
			{what: "a user attribute named session", change: Item{"session": decimal("5")}},
		}
	case "dynamo-dlm":
		return []odd{
			{what: "a code with dashes", change: Item{"release_code": text(aUUID)}},
			{what: "a fraction of a second", change: Item{"expires": decimal("1.5")}, dies: soon},
			{what: "another notation", change: Item{"expires": decimal("1e1")}, dies: soon},
			{what: "a time below 0", change: Item{"expires": decimal("-1")}, dies: soon},
			{what: "a time in the far future", change: Item{"expires": decimal("99999999999999999999")}, dies: never},
			{what: "a time in milliseconds", change: Item{"expires": decimal("1764230400000")}, dies: never},
		}
	case "dyndb-mutex":
		return []odd{
			{what: "an empty holder", change: Item{"holder": text("")}},
			{what: "a holder that looks like ours", change: Item{"holder": text(lookalike)}},
			{what: "a holder that looks like the beginning of ours", change: Item{"holder": text(lookalike + "/")}},
			{what: "a holder that looks like ours and a version", change: Item{"holder": text(lookalike + "/" + aUUID)}},
			{what: "a fraction of a millisecond", change: Item{"expire_ts": decimal("1.5")}, dies: soon},
			{what: "another notation", change: Item{"expire_ts": decimal("1e1")}, dies: soon},
			{what: "a time below 0", change: Item{"expire_ts": decimal("-1")}, dies: soon},
			{what: "a time in the far future", change: Item{"expire_ts": decimal("99999999999999999999")}, dies: never},
		}
	}
	panic("no oddities of " + s.Layout.Name())
}

// eachOdd calls the function "hold" once for each of the unusual records. Each record has a key of
// its own.
func (e *env) eachOdd(lease time.Duration, hold func(e *env, o odd, item Item)) {
	e.Helper()
	key := e.key
	for i, o := range e.oddities() {
		one := *e
		one.key = fmt.Sprintf("%s/%d", key, i)
		if o.change[e.sort] != nil {
			continue // skipped, because the change would replace the sort key of the record
		}
		one.put(with(one.granted(one.key, "a-peer", lease), o.change))
		// The item is read back, because DynamoDB changes how numbers are written.
		item := one.item()
		hold(&one, o, item)
		if e.Failed() {
			e.Fatalf("with %s: %v", o.what, describe(item))
		}
	}
}

// isPeers checks that r, which leasehold has decoded from item, shows a peer as the holder. A peer
// is a client of another lock library.
func (e *env) isPeers(r leasehold.Record, item Item) {
	e.Helper()
	if r.Released || r.Token != 0 || r.Grant != "" || r.Version == "" {
		e.Errorf("read as %+v", r)
	}
	for _, name := range []string{"ownerName", "owner_name", "holder"} {
		if item[name] != nil && r.Owner != textOf(item[name]) {
			e.Errorf("owner %q", r.Owner)
		}
	}
}

func oddIsHeld(e *env) {
	e.eachOdd(patience, func(e *env, o odd, item Item) {
		c, _ := e.client()
		e.isPeers(e.get(c), item)
		if e.isByClock() && o.dies == soon {
			return // skipped, because by the expiry time in the record the holder is already dead
		}
		fresh, _ := e.client() // a client that has not observed the record
		begun := time.Now()
		lock, err := fresh.TryAcquire(e.Context(), e.key)
		if err == nil && o.dies > 0 && time.Since(begun) >= o.dies {
			// TryAcquire was granted the key, because the peer's short lease had expired when
			// TryAcquire read the record a second time.
			r, _ := lock.TookOver()
			e.isPeers(r, item)
			e.release(lock)
			return
		}
		var held *leasehold.HeldError
		if !errors.As(err, &held) {
			e.Errorf("tried: %v", err)
			return
		}
		e.isPeers(held.Holder, item)
		e.unchanged(item, "a refusal")
	})
}

func oddDies(e *env) {
	e.eachOdd(e.short(), func(e *env, o odd, _ Item) {
		c, _ := e.client()
		if o.dies == never {
			_, err := c.TryAcquire(e.Context(), e.key)
			// A record of python_dynamodb_lock has a TTL attribute, and DynamoDB may delete the
			// record after an hour. So the check sleeps for less than an hour.
			time.Sleep(30 * time.Minute)
			if _, again := c.TryAcquire(e.Context(), e.key); !errors.Is(err, leasehold.ErrHeld) || !errors.Is(again, leasehold.ErrHeld) {
				e.Errorf("tried: %v, %v", err, again)
			}
			return
		}
		begun := time.Now()
		lock, err := c.Acquire(e.within(patience), e.key)
		if err != nil {
			e.Error(err)
			return
		}
		late := e.skew + e.step() + e.short()
		if o.dies != 0 {
			late = o.dies
		}
		if took := time.Since(begun); took > late+10*time.Millisecond {
			e.Errorf("taken over only after %v", took)
		}
		if r, took := lock.TookOver(); !took || r.Grant != "" {
			e.Errorf("took over %+v, %v", r, took)
		}
		if now := e.get(c); now.Grant != lock.Record().Grant || now.Token != lock.Token() {
			e.Errorf("after the grant, Get returns %+v", now)
		}
		e.release(lock)
	})
}

func oddIsBroken(e *env) {
	e.eachOdd(patience, func(e *env, _ odd, _ Item) {
		c, _ := e.client()
		if err := c.Break(e.within(patience), e.get(c), leasehold.BreakOptions{}); err != nil {
			e.Error(err)
		}
		if item := e.item(); !e.isFree(item) {
			e.Errorf("left %v", describe(item))
		}
	})
}

// nameless returns the record of a peer's grant with an empty owner. It also reports whether the
// peer's library stores owners and renews grants. If not, the caller must skip its check:
// dynamo-dlm stores no owner, and dyndb-mutex never renews.
func (e *env) nameless() (Item, bool) {
	item := e.granted(e.key, "", patience)
	return item, !e.isByClock()
}

func namelessIsBroken(e *env) {
	first, ok := e.nameless()
	if !ok {
		return
	}
	c, _ := e.client()
	e.put(first)
	r := e.get(c)
	next, _ := e.nameless()
	// The peer writes a renewal or another grant. The record does not show which of the two the
	// peer has written.
	e.put(next)
	if err := c.Break(e.within(patience), r, leasehold.BreakOptions{}); !errors.Is(err, leasehold.ErrChanged) {
		e.Errorf("error %v", err)
	}
	e.unchanged(next, "a break of the record that was read")
	if err := c.Break(e.within(patience), e.get(c), leasehold.BreakOptions{}); err != nil {
		e.Error(err)
	}
}

func namelessRenews(e *env) {
	item, ok := e.nameless()
	if !ok {
		return
	}
	e.put(item)
	c, seen := e.waiting()
	next := e.waiter(c)
	for range 10 {
		time.Sleep(time.Second)
		item, _ = e.nameless()
		e.put(item)
	}
	time.Sleep(time.Second)
	if n := len(seen); n != 1 {
		e.Errorf("%d events report that the key is held, want 1", n)
	}
	e.remove()
	got := <-next
	if got.err != nil {
		e.Fatal(got.err)
	}
	e.release(got.lock)
}
