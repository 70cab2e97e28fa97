package inspect

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
)

func TestAWatchTellsOfReleasesDeletionsAndNewGrants(t *testing.T) {
	held := func(key, grant string) leasehold.Record {
		return leasehold.Record{Key: leasehold.Key{Partition: key}, Grant: grant, Lease: time.Second}
	}
	free := func(key, grant string) leasehold.Record {
		r := held(key, grant)
		r.Released = true
		return r
	}
	for _, c := range []struct {
		name        string
		before, now []leasehold.Record
		want        string
	}{
		{"nothing", []leasehold.Record{held("a", "1")}, []leasehold.Record{held("a", "1")}, ""},
		{"a grant", nil, []leasehold.Record{held("a", "1")}, "a 1 held"},
		{"a release", []leasehold.Record{held("a", "1")}, []leasehold.Record{free("a", "1")}, "a 1 released"},
		{"a deletion", []leasehold.Record{held("a", "1")}, nil, "a 1 deleted"},
		{"the end of a record", []leasehold.Record{free("a", "1")}, nil, "a 1 deleted"},
		{"the next holder", []leasehold.Record{held("a", "1")}, []leasehold.Record{held("a", "2")}, "a 2 held"},
		{"a reader more", []leasehold.Record{held("a", "1")}, []leasehold.Record{held("a", "1"), held("a", "2")}, "a 2 held"},
		{"a reader less", []leasehold.Record{held("a", "1"), held("a", "2")}, []leasehold.Record{held("a", "2")}, "a 1 released"},
		{"several keys", []leasehold.Record{held("b", "1"), held("d", "1")}, []leasehold.Record{held("c", "1"), held("a", "1")}, "a 1 held, b 1 deleted, c 1 held, d 1 deleted"},
	} {
		var got []string
		for _, ch := range holdingsOf(c.before).changesTo(holdingsOf(c.now)) {
			got = append(got, fmt.Sprint(ch.record.Key.Partition, " ", ch.record.Grant, " ", ch.state))
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
