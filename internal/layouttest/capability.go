package layouttest

import (
	"errors"
	"time"

	"github.com/leasehold-go/leasehold"
)

func capabilityChecks() []check {
	return []check{
		{claim: "an unsupported feature is rejected before any request", hold: unsupported},
		{claim: "a release keeps or deletes the record", hold: policies},
		{claim: "only layouts that keep records and have a TTL support retention", hold: retention},
		{claim: "a peer's grant is never read as a grant with a token", hold: fencedOrNot},
		{claim: "only a number is accepted as a slot", hold: slots},
	}
}

// isUnsupported fails the check unless err is the error for a feature that the layout does not
// have.
func (e *env) isUnsupported(what string, err error) {
	e.Helper()
	var no *leasehold.UnsupportedError
	if !errors.As(err, &no) || no.Layout != e.Layout.Name() || no.Feature == "" || !errors.Is(err, errors.ErrUnsupported) {
		e.Errorf("%s: %v", what, err)
	}
}

func unsupported(e *env) {
	caps := e.caps()
	c, w := e.client()
	lock := e.acquire(c, leasehold.WithoutRenewal())
	w.sent()
	contents := func(name string, opts ...leasehold.RecordOption) {
		for _, o := range opts {
			_, err := c.TryAcquire(e.Context(), e.key+"/other", o)
			e.isUnsupported("acquire with "+name, err)
			e.isUnsupported("renew with "+name, lock.Renew(e.Context(), o))
			e.isUnsupported("release with "+name, lock.Release(e.Context(), o))
		}
	}
	if !caps.Data {
		contents("data", leasehold.WithData([]byte("x")), leasehold.WithData(nil))
		_, err := c.TryAcquire(e.Context(), e.key+"/other", leasehold.WithInitialData([]byte("x")))
		e.isUnsupported("acquire with initial data", err)
	}
	if !caps.Attributes {
		contents("attributes", leasehold.WithAttributes(Item{"a": text("1")}), leasehold.WithAttributes(Item{"a": nil}))
	}
	for _, p := range []struct {
		can    bool
		policy leasehold.DeleteOnRelease
	}{{caps.KeepOnRelease, false}, {caps.DeleteOnRelease, true}} {
		if !p.can {
			_, err := c.TryAcquire(e.Context(), e.key+"/other", p.policy)
			e.isUnsupported("acquire with a policy", err)
			e.isUnsupported("release with a policy", lock.Release(e.Context(), p.policy))
		}
	}
	if !caps.SortKey {
		_, err := c.TryAcquire(e.Context(), e.key, leasehold.WithSortKey("7"))
		e.isUnsupported("acquire with a sort key", err)
		_, err = c.Get(e.Context(), e.key, leasehold.WithSortKey("7"))
		e.isUnsupported("get with a sort key", err)
		e.isUnsupported("break with a sort key", c.Break(e.Context(), leasehold.Record{Key: leasehold.Key{Partition: e.key, Sort: "7"}, Version: "v"}, leasehold.BreakOptions{}))
	}
	if err := lock.Err(); err != nil {
		e.Errorf("a rejected call ended the lock: %v", err)
	}
	if ops := w.sent(); len(ops) != 0 {
		e.Errorf("sent %v", ops)
	}
	e.release(lock)
}

func policies(e *env) {
	c, _ := e.client()
	if e.caps().KeepOnRelease {
		e.release(e.acquire(c, leasehold.DeleteOnRelease(false)))
		if e.item() == nil {
			e.Error("a release deleted the record that it must keep")
		}
		e.release(e.acquire(c), leasehold.DeleteOnRelease(false))
		if e.item() == nil {
			e.Error("a release deleted the record that it must keep")
		}
	}
	if e.caps().DeleteOnRelease {
		d, _ := e.client(func(cfg *leasehold.Config) { cfg.DeleteOnRelease = true })
		e.release(e.acquire(d))
		if item := e.item(); item != nil {
			e.Errorf("a client with DeleteOnRelease left %v", describe(item))
		}
	}
}

func retention(e *env) {
	_, err := leasehold.New(e.connect(), leasehold.Config{Table: e.table, Layout: e.Layout, Retention: time.Hour})
	can := e.caps().KeepOnRelease && e.caps().TTL
	if !can {
		e.isUnsupported("retention", err)
		return
	}
	if err != nil {
		e.Fatal(err)
	}
	c, _ := e.client(func(cfg *leasehold.Config) { cfg.Retention = time.Hour })
	sent := time.Now()
	e.release(e.acquire(c))
	if at, early := numberOf(e.item()[e.ttl]), number(sent.Add(time.Hour-time.Second).Unix()); at < numberOf(early) {
		e.Errorf("TTL may delete the record at %s, not an hour after %d", at, sent.Unix())
	}
	forEver, _ := e.client(func(cfg *leasehold.Config) { cfg.Retention = leasehold.Forever })
	e.release(e.acquire(forEver))
	if v := e.item()[e.ttl]; v != nil {
		e.Errorf("TTL may delete at %v a record with endless retention", describeValue(v))
	}
}

// fencedOrNot checks a record with a grant that a peer (a client of another lock library) wrote.
// Leasehold must read neither a fencing token nor a grant id from this record, although attributes
// of an earlier grant by leasehold may still be in it.
func fencedOrNot(e *env) {
	c, _ := e.client()
	e.release(e.acquire(c))
	left := e.item()
	grant := e.granted(e.key, "a-peer", patience)
	for name, v := range left { // left is empty in a layout whose releases delete the item
		if grant[name] == nil && name != "isReleased" {
			grant[name] = v
		}
	}
	e.put(grant)
	if r := e.get(c); r.Token != 0 || r.Grant != "" {
		e.Errorf("a peer's grant reads as %+v", r)
	}
	if e.caps().EveryGrantFenced && e.Layout.Name() != "native" {
		e.Error("the layout promises a token in every grant, but a peer's grants have none")
	}
}

func slots(e *env) {
	if !e.hasSlots() {
		return
	}
	c, w := e.client()
	for _, sort := range []string{"x", "-1", "01", "1.5", "99999999999"} {
		if _, err := c.TryAcquire(e.Context(), e.key, leasehold.WithSortKey(sort)); err == nil {
			e.Errorf("slot %q was granted", sort)
		}
	}
	if ops := w.sent(); len(ops) != 0 {
		e.Errorf("sent %v", ops)
	}
}
