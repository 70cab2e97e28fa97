package layouttest

import (
	"errors"
	"slices"
	"strings"

	"github.com/leasehold-go/leasehold"
)

func listChecks() []check {
	return []check{
		{claim: "records of every kind of holder are listed", hold: lists},
		{claim: "List starts after the given key", hold: listsAfter},
		{claim: "List returns one partition", hold: listsPartition},
	}
}

// list lists the check's keys. It returns the records, and separately the errors of records
// that cannot be decoded.
func (e *env) list(c *leasehold.Client, opts leasehold.ListOptions) (records []leasehold.Record, bad []*leasehold.RecordError) {
	e.Helper()
	for r, err := range c.List(e.within(patience), opts) {
		var re *leasehold.RecordError
		switch {
		case err == nil:
			records = append(records, r)
		case errors.As(err, &re):
			bad = append(bad, re)
		default:
			e.Fatal(err)
		}
	}
	slices.SortFunc(records, func(a, b leasehold.Record) int {
		return strings.Compare(a.Key.Partition+a.Key.Sort, b.Key.Partition+b.Key.Sort)
	})
	return records, bad
}

func (e *env) acquireAs(c *leasehold.Client, key string) *leasehold.Lock {
	e.Helper()
	lock, err := c.Acquire(e.within(patience), key)
	if err != nil {
		e.Fatal(err)
	}
	return lock
}

func lists(e *env) {
	c, _ := e.client()
	held := e.acquireAs(c, e.key+"/1")
	e.put(e.granted(e.key+"/2", "a-peer", patience))
	e.release(e.acquireAs(c, e.key+"/3"))
	records, bad := e.list(c, leasehold.ListOptions{Prefix: e.key})
	want := 2
	if e.caps().KeepOnRelease {
		want = 3
	}
	if len(bad) != 0 || len(records) != want {
		e.Fatalf("listed %+v, %v", records, bad)
	}
	if r := records[0]; r.Grant != held.Record().Grant || r.Key != held.Key() || r.Released {
		e.Errorf("our grant is listed as %+v", r)
	}
	if r := records[1]; r.Owner != e.peer.owner("a-peer") || r.Token != 0 || r.Released {
		e.Errorf("a peer's grant is listed as %+v", r)
	}
	if want == 3 && !records[2].Released {
		e.Errorf("a released record is listed as %+v", records[2])
	}
	e.release(held)
}

func listsAfter(e *env) {
	c, _ := e.client()
	want := map[leasehold.Key]bool{}
	for _, name := range []string{"/1", "/2", "/3"} {
		e.put(e.granted(e.key+name, "a-peer", patience))
		want[leasehold.Key{Partition: e.key + name, Sort: e.sortValue}] = true
	}
	var after leasehold.Key
	for range 3 {
		for r, err := range c.List(e.within(patience), leasehold.ListOptions{Prefix: e.key, After: after}) {
			if err != nil || !want[r.Key] {
				e.Fatalf("listed %+v, %v", r, err)
			}
			delete(want, r.Key)
			after = r.Key
			break
		}
	}
	if len(want) != 0 {
		e.Errorf("not listed: %v", want)
	}
}

func listsPartition(e *env) {
	c, _ := e.client()
	e.put(e.granted(e.key, "a-peer", patience))
	e.put(e.granted(e.key+"/1", "a-peer", patience))
	want := 1
	if e.caps().SortKey {
		item := e.granted(e.key, "a-peer", patience)
		for name, v := range e.sortedKeyItem(e.key, "7") {
			item[name] = v
		}
		e.put(item)
		want = 2
	}
	records, bad := e.list(c, leasehold.ListOptions{Partition: e.key})
	if len(bad) != 0 || len(records) != want {
		e.Fatalf("listed %+v, %v", records, bad)
	}
	for _, r := range records {
		if r.Key.Partition != e.key {
			e.Errorf("listed %+v", r)
		}
	}
}
