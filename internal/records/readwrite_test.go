package records_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

// most of everything: what a client names at most, and a row holds.
const (
	mostTried   = 50
	mostReaders = 100
)

func versions(of string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s-%d", of, i)
	}
	return out
}

// What is too long for DynamoDB is refused before its condition is looked at.
func TestEveryWriteOfAReadWriteLockIsShortEnoughAtItsLongest(t *testing.T) {
	b, _ := newBench(t, layout.Native{})
	rw := b.Protocol.(protocol.ReadWriting)
	var readers []protocol.Record
	for i, version := range versions("read", mostReaders) {
		readers = append(readers, protocol.Record{Mode: protocol.ModeRead, Grant: fmt.Sprintf("reader-%d", i), Version: version})
	}
	intent := protocol.Record{Mode: protocol.ModeIntent, Grant: "intent", Version: "intent"}
	left := protocol.Record{Mode: protocol.ModeReadersFirst, Grant: "left", Version: "left"}
	g := b.grant("new")
	g.Takeable, g.Intents = versions("tried", mostTried), versions("intended", mostTried)
	held := protocol.Hold{Key: g.Key, Owner: owner, Grants: []string{g1}, Token: 7, Versions: versions("renewed", mostTried+1)}
	tried := protocol.Hold{Key: g.Key, Owner: owner, Grants: g.Takeable, Versions: g.Takeable}
	for _, mode := range []protocol.Mode{protocol.ModeRead, protocol.ModeWrite} {
		p := rw.ReadWrite(mode, false)
		grant := g
		if mode == protocol.ModeWrite {
			grant.Dead = append([]protocol.Record{intent, left}, readers...)
		} else {
			// Those who keep a reader out are its writer, its intent, or one reader
			// of many; and all that it tried may have landed too long ago.
			grant.Dead = []protocol.Record{readers[0]}
			for _, version := range g.Takeable {
				grant.Dead = append(grant.Dead, protocol.Record{Mode: protocol.ModeRead, Grant: version, Version: version})
			}
		}
		release := protocol.Release{Version: "v", Now: granted, Expires: granted, ReadersFirst: time.Second}
		for name, w := range map[string]*protocol.Write{
			"grant":                 p.Grant(grant),
			"renewal":               p.Of(g1).Renew(held, protocol.Renewal{Version: "v", Lease: lease, Now: granted}),
			"release":               p.Of(g1).Release(held, release),
			"release of all tried":  p.Of("").Release(tried, release),
			"guard":                 p.Of(g1).Guard(held),
			"withdrawal of intents": p.Withdraw(protocol.Hold{Key: g.Key, Owner: owner, Grants: g.Intents}),
		} {
			t.Run(fmt.Sprintf("%s, %s", mode, name), func(t *testing.T) {
				b := *b
				b.T = t
				b.lands(w)
			})
		}
	}
	dead := g
	dead.Dead = []protocol.Record{intent}
	b.lands(rw.ReadWrite(protocol.ModeWrite, false).Intend(protocol.Blockers{By: readers}, dead))
	b.lands(rw.ReadWrite(protocol.ModeRead, false).Sweep(g.Key, readers)) // a quarter of them is the most that is named
}

func TestAnIntentTakesNobodysPlaceButADeadOnesOrItsOwn(t *testing.T) {
	b, _ := newBench(t, layout.Native{})
	rw := b.Protocol.(protocol.ReadWriting)
	write := rw.ReadWrite(protocol.ModeWrite, false)
	readers := protocol.Blockers{By: []protocol.Record{{Mode: protocol.ModeRead, Grant: "r", Version: "r"}}}
	create := b.grant("r")
	create.Create = true
	if !b.lands(rw.ReadWrite(protocol.ModeRead, false).Grant(create)) || !b.lands(write.Intend(readers, b.grant("i1"))) {
		t.Fatal("the intent does not land")
	}
	own, dead := b.grant("i2"), b.grant("i3")
	own.Intents = []string{"i1"}
	dead.Dead = []protocol.Record{{Mode: protocol.ModeIntent, Grant: "i1", Version: "i2"}}
	for _, tc := range []struct {
		g     protocol.Grant
		lands bool
	}{{b.grant("other"), false}, {own, true}, {dead, true}} {
		if got := b.lands(write.Intend(readers, tc.g)); got != tc.lands {
			t.Errorf("%s lands: %v", tc.g.Version, got)
		}
	}
	b.put(nil)
	if !b.lands(write.Grant(b.grant("w"))) || b.lands(write.Intend(readers, b.grant("i4"))) {
		t.Error("an intent beside a writer")
	}
}

func TestReadersAreListedInTheOrderOfTheirGrants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := newBench(t, layout.Native{})
		rw := b.Protocol.(protocol.ReadWriting)
		var granted, listed []string
		for range 10 {
			time.Sleep(time.Millisecond)
			g := b.grant(protocol.NewVersion())
			g.Create = b.item() == nil
			if !b.lands(rw.ReadWrite(protocol.ModeRead, false).Grant(g)) {
				t.Fatal("not granted")
			}
			granted = append(granted, g.Version)
		}
		readers, err := rw.Entries(b.item())
		for _, r := range readers {
			listed = append(listed, r.Grant)
		}
		if err != nil || !slices.Equal(listed, granted) {
			t.Errorf("granted %q, listed %q: %v", granted, listed, err)
		}
	})
}

// Whoever waits goes by the lease that it reads.
func TestARenewalOfAReadWriteLockWritesItsLease(t *testing.T) {
	for _, mode := range []protocol.Mode{protocol.ModeRead, protocol.ModeWrite} {
		t.Run(string(mode), func(t *testing.T) {
			b, _ := newBench(t, layout.Native{})
			rw := b.Protocol.(protocol.ReadWriting)
			p := rw.ReadWrite(mode, false)
			g := b.grant(g1)
			g.Create = true
			if !b.lands(p.Grant(g)) {
				t.Fatal("not granted")
			}
			h := protocol.Hold{Key: g.Key, Owner: owner, Grants: []string{g1}, Versions: []string{g1}}
			if !b.lands(p.Of(g1).Renew(h, protocol.Renewal{Version: v2, Lease: 3 * lease, Now: granted})) {
				t.Fatal("not renewed")
			}
			held, err := rw.Entries(b.item())
			if err != nil || len(held) != 1 || held[0].Version != v2 || held[0].Lease != 3*lease {
				t.Errorf("renewed for %v, it reads as %+v, %v", 3*lease, held, err)
			}
		})
	}
}

// A holder whose lease reads as 0 would be dead as soon as it is seen.
func TestADamagedHolderOfAReadWriteLockIsAnErrorThatNamesTheAttribute(t *testing.T) {
	b, _ := newBench(t, layout.Native{})
	rw := b.Protocol.(protocol.ReadWriting)
	for _, tc := range []struct {
		row              int
		place, attribute string
		kind             uint8
		value            string
	}{
		{0, "writer/leaseDuration", "writer.leaseDuration", 0, "0"},
		{1, "readers/a/leaseDuration", "readers.leaseDuration", 0, "-5"},
		{1, "intent/leaseDuration", "intent.leaseDuration", 0, "-1s"},
		{1, "tokens/a", "tokens.a", 1, "-1"},
		{1, "tokens/a", "tokens.a", 1, "9007199254740991"},
	} {
		_, err := rw.Entries(edited(parseItem([]byte(rowItems[tc.row])), tc.place, tc.kind, tc.value))
		var bad *protocol.DecodeError
		if !errors.As(err, &bad) || bad.Attribute != tc.attribute {
			t.Errorf("%s = %s: error %v", tc.place, tc.value, err)
		}
	}
}

func TestReadersNeverGoFirstForLessThanNoTime(t *testing.T) {
	b, _ := newBench(t, layout.Native{})
	write := b.Protocol.(protocol.ReadWriting).ReadWrite(protocol.ModeWrite, false)
	for _, ms := range []string{"-1", "9223372036854775807"} {
		row := edited(parseItem([]byte(rowItems[2])), "writer/readersFor", 1, ms)
		by, err := write.Blockers(row, time.UnixMilli(0))
		if err != nil || len(by.By) != 1 || by.By[0].Lease < 0 {
			t.Errorf("readersFor %s: %+v, %v", ms, by, err)
		}
	}
}
