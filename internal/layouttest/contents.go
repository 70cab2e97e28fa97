package layouttest

import (
	"reflect"
	"time"

	"github.com/leasehold-go/leasehold"
)

func contentChecks() []check {
	return []check{
		{claim: "a record shows when it was granted and last written", hold: contentTimes},
		{claim: "data and attributes in a peer's record survive our grant", hold: carriesOn},
		{claim: "grant, renewal and release change data and attributes", hold: changesContents},
		{claim: "keys with different sort keys are different locks", hold: sortKeys},
	}
}

// carried returns the data and the attributes that a caller has stored in the record r, as an Item.
func (e *env) carried(r leasehold.Record) Item {
	out := Item{}
	for name, v := range r.Attributes {
		out[name] = v
	}
	if r.Data != nil {
		out["data"] = binary(string(r.Data))
	}
	return out
}

func carriesOn(e *env) {
	c, _ := e.client()
	e.put(with(e.granted(e.key, "a-peer", e.short()), e.peer.carries))
	want := e.carried(e.get(c))
	if len(want) != len(e.peer.carries) || len(want) > 0 && !reflect.DeepEqual(want, e.peer.carries) {
		e.Fatalf("read as %v, written as %v", describe(want), describe(e.peer.carries))
	}
	holds := func(when string) {
		e.Helper()
		item := e.item()
		for name, v := range e.peer.carries {
			if !reflect.DeepEqual(item[name], v) {
				e.Errorf("%s: %s is %v, was %v", when, name, describeValue(item[name]), describeValue(v))
			}
		}
	}
	lock := e.acquire(c) // acquire returns once the peer that held the key is dead
	holds("granted")
	if got := e.carried(lock.Record()); !reflect.DeepEqual(got, want) {
		e.Errorf("the lock has %v, not %v", describe(got), describe(want))
	}
	if err := lock.Renew(e.within(patience)); err != nil {
		e.Fatal(err)
	}
	holds("renewed")
	e.release(lock)
	if e.caps().KeepOnRelease {
		holds("released")
		e.release(e.acquire(c))
		holds("granted and released again")
	}
}

func changesContents(e *env) {
	c, _ := e.client()
	caps := e.caps()
	if !caps.Attributes {
		return // a separate check covers layouts without this feature
	}
	is := func(lock *leasehold.Lock, want Item) {
		e.Helper()
		if !caps.Data {
			want = with(want, Item{"data": nil})
		}
		if got := e.carried(lock.Record()); !reflect.DeepEqual(got, want) {
			e.Errorf("the lock has %v, not %v", describe(got), describe(want))
		}
		item := e.item()
		for name, v := range want {
			if !reflect.DeepEqual(item[name], v) {
				e.Errorf("%s is %v in the record, not %v", name, describeValue(item[name]), describeValue(v))
			}
		}
	}
	grant := []leasehold.AcquireOption{leasehold.WithAttributes(Item{"a": text("1"), "b": decimal("2")})}
	renewal := []leasehold.RenewOption{leasehold.WithAttributes(Item{"a": nil, "c": text("3")})}
	if caps.Data {
		grant = append(grant, leasehold.WithInitialData([]byte("one")))
		renewal = append(renewal, leasehold.WithData([]byte("two")))
	}
	lock := e.acquire(c, grant...)
	is(lock, Item{"a": text("1"), "b": decimal("2"), "data": binary("one")})
	if err := lock.Renew(e.within(patience), renewal...); err != nil {
		e.Fatal(err)
	}
	is(lock, Item{"b": decimal("2"), "c": text("3"), "data": binary("two")})
	if err := lock.Renew(e.within(patience), leasehold.WithAttributes(Item{"b": nil, "c": nil, "d": text("4")})); err != nil {
		e.Fatal(err)
	}
	is(lock, Item{"d": text("4"), "data": binary("two")})
	with := leasehold.WithAttributes(Item{"e": text("5")})
	if !caps.KeepOnRelease {
		if err := lock.Release(e.within(patience), with); err == nil || lock.Err() != nil {
			e.Errorf("a release without a record accepted attributes: %v", err)
		}
		e.release(lock)
		return
	}
	e.release(lock, with)
	lock = e.acquire(c, leasehold.WithInitialData([]byte("three")))
	is(lock, Item{"d": text("4"), "e": text("5"), "data": binary("two")})
	e.release(lock, leasehold.WithData(nil), leasehold.WithAttributes(Item{"d": nil, "e": nil}))
	lock = e.acquire(c)
	is(lock, Item{})
	e.release(lock)
}

func sortKeys(e *env) {
	if !e.caps().SortKey {
		return // a separate check covers layouts without this feature
	}
	c, _ := e.client()
	one, two := "7", "8"
	first := e.acquire(c, leasehold.WithSortKey(one))
	second := e.acquire(c, leasehold.WithSortKey(two))
	// This call does not name a sort key, so the layout uses its default sort key.
	third := e.acquire(c)
	for lock, sort := range map[*leasehold.Lock]string{first: one, second: two, third: e.sortValue} {
		r, err := c.Get(e.within(patience), e.key, leasehold.WithSortKey(sort))
		if err != nil || r.Grant != lock.Record().Grant || r.Key != (leasehold.Key{Partition: e.key, Sort: sort}) {
			e.Errorf("%s: read as %+v, %v", sort, r, err)
		}
		e.release(lock)
	}
	// item is a record with the first of the two sort keys. It shows that a peer (a client of another
	// lock library) holds the key.
	item := e.granted(e.key, "a-peer", patience)
	for name, v := range e.sortedKeyItem(e.key, one) {
		item[name] = v
	}
	e.put(item)
	if _, err := c.TryAcquire(e.Context(), e.key, leasehold.WithSortKey(one)); err == nil {
		e.Error("a key that a peer holds was granted")
	}
	e.release(e.acquire(c, leasehold.WithSortKey(two)))
}

func contentTimes(e *env) {
	c, _ := e.client()
	before := time.Now().Truncate(time.Millisecond)
	lock := e.acquire(c, leasehold.WithoutRenewal())
	granted := e.get(c)
	if at := granted.GrantedAt; at.Before(before) || at.After(time.Now()) || granted.WrittenAt.Before(at) {
		e.Errorf("granted at %v, written at %v, after %v", at, granted.WrittenAt, before)
	}
	if err := lock.Renew(e.within(patience)); err != nil {
		e.Fatal(err)
	}
	renewed := e.get(c)
	if at := renewed.WrittenAt; !renewed.GrantedAt.Equal(granted.GrantedAt) || at.Before(granted.WrittenAt) || at.After(time.Now()) {
		e.Errorf("renewed at %v, with the grant time %v, which was %v before", at, renewed.GrantedAt, granted.GrantedAt)
	}
	e.release(lock)
	e.put(e.granted(e.key, "a-peer", patience))
	if r := e.get(c); !r.GrantedAt.IsZero() || !r.WrittenAt.IsZero() {
		e.Errorf("a peer's grant shows the grant time %v and the write time %v", r.GrantedAt, r.WrittenAt)
	}
}
