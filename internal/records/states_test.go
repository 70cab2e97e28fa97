package records_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
)

// States of a record, compared with the held record that a test begins with.
const (
	same     = "as it was"
	absent   = "absent"
	version  = "with another version"
	grant    = "with another grant"
	token    = "with another token"
	holder   = "with another owner"
	released = "released"
	kind     = "with a kind"
	spent    = "with the last token"
	expired  = "expired"
)

// The method "in" copies the item of a held record, changes the copy to the given state, and
// returns it. The method returns false if the layout has no such state.
func (b *bench) in(state string, held protocol.Item) (protocol.Item, bool) {
	change := protocol.Item{}
	mutex, dlm := held["holder"] != nil, held["release_code"] != nil
	of := func(attribute, value string) {
		if held[attribute] != nil {
			change[attribute] = text(value)
		}
	}
	switch state {
	case absent:
		return nil, true
	case version:
		of("recordVersionNumber", "x")
		of("record_version_number", "x")
		of("release_code", "x")
		of("holder", owner+"/x")
	case grant:
		change["grantId"] = text("x")
	case token:
		change["fencingToken"] = decimal("7")
	case holder:
		of("ownerName", another)
		of("owner_name", another)
		of("holder", another+"/"+v2)
		if dlm {
			return nil, false
		}
	case released:
		of("holder", "__empty__")
		if held["ownerName"] != nil {
			change["isReleased"] = text("1")
		}
		if !b.Capabilities().KeepOnRelease {
			return nil, false
		}
	case kind:
		change["kind"] = text("rw")
	case spent:
		change["fencingToken"] = decimal("9007199254740991")
	case expired:
		if !b.isByClock() {
			return nil, false
		}
		if mutex {
			change["expire_ts"] = decimal("1000")
		} else {
			change["expires"] = decimal("1")
		}
	}
	item := maps.Clone(held)
	maps.Copy(item, change)
	return item, true
}

// landsIn checks that DynamoDB applies the write if the record is in one of the given states,
// and rejects it in every other state.
func (b *bench) landsIn(what string, held protocol.Item, w func() *protocol.Write, states ...string) {
	b.Helper()
	for _, state := range []string{same, absent, version, grant, token, holder, released, kind, spent, expired} {
		item, known := b.in(state, held)
		if !known {
			continue
		}
		b.put(item)
		if lands, want := b.lands(w()), slices.Contains(states, state); lands != want {
			b.Errorf("%s, record %s: applied %v, want %v", what, state, lands, want)
		}
	}
}

// The method "where" adds the states in "more" to the given states if "layouts" contains b's
// layout. The names in "layouts" are separated by spaces.
func (b *bench) where(states []string, layouts string, more ...string) []string {
	if slices.Contains(strings.Fields(layouts), b.Name()) {
		return append(slices.Clone(states), more...)
	}
	return states
}

func TestWriteOfHolderIsAppliedOnlyIfItsGrantIsCurrent(t *testing.T) {
	onEachLayout(t, func(t *testing.T, b *bench) {
		h, held := b.hold()
		mine := []string{same, kind, expired}
		b.landsIn("renew", held, func() *protocol.Write {
			return b.Renew(h, protocol.Renewal{Version: v3, Lease: lease, Now: granted})
		}, mine...)
		b.landsIn("release", held, func() *protocol.Write { return b.Release(h, protocol.Release{Version: v3, Expires: granted}) }, mine...)
		b.landsIn("delete", held, func() *protocol.Write { return b.Delete(h) }, mine...)
		b.landsIn("hand over", held, func() *protocol.Write { return b.HandOver(h, b.grant(g2)) }, mine...)
		unresolved := h
		unresolved.Token = 0 // after a hand-over of unknown outcome, the client does not know the current token
		b.landsIn("hand over again", held, func() *protocol.Write { return b.HandOver(unresolved, b.grant(g2)) }, append(mine, token)...)
		// A guard must also succeed after a renewal. In layout dyndb-mutex, it also succeeds if
		// only the owner differs. This is safe: the guard compares the grant id, which each grant
		// by the library dyndb-mutex erases.
		b.landsIn("guard", held, func() *protocol.Write { return b.Guard(h) }, b.where(append(mine, version), "dyndb-mutex", holder)...)
	})
}

func TestBreakIsAppliedOnlyToVersionThatWasRead(t *testing.T) {
	onEachLayout(t, func(t *testing.T, b *bench) {
		_, held := b.hold()
		r := b.record()
		whatever := []string{same, token, kind, spent, expired}
		b.landsIn("break", held, func() *protocol.Write { return b.Break(r, protocol.Break{Version: v3, Expires: granted}) }, append(whatever, grant)...)
	})
}

func TestGrantIsAppliedOnlyIfKeyIsFreeOrHolderDead(t *testing.T) {
	onEachLayout(t, func(t *testing.T, b *bench) {
		_, held := b.hold()
		dead := b.record()
		for _, tc := range []struct {
			what   string
			change func(*protocol.Grant)
			states []string
		}{
			{"plain", func(*protocol.Grant) {}, []string{absent, released}},
			{"of a record that exists", func(g *protocol.Grant) { g.IfExists = true }, []string{released}},
			{"over an own attempt", func(g *protocol.Grant) { g.Takeable = []string{v0, v2} },
				[]string{absent, released, same, grant, token, holder, expired}},
			{"over a record that must exist", func(g *protocol.Grant) { g.Takeable, g.IfExists = []string{v2}, true },
				[]string{released, same, grant, token, holder, expired}},
			{"over a dead holder", func(g *protocol.Grant) { g.Dead = &dead },
				b.where([]string{absent, released}, "native awslabs dynamolock python-dynamodb-lock", same, grant, token, holder)},
			{"delivered late", func(g *protocol.Grant) { g.Version, g.Takeable = g1, []string{v2} }, []string{absent, grant}},
		} {
			if tc.what == "over a dead holder" && b.isByClock() {
				tc.states = append(tc.states, expired)
			}
			b.landsIn("grant "+tc.what, held, func() *protocol.Write {
				g := b.grant(g9)
				tc.change(&g)
				return b.Grant(g)
			}, tc.states...)
		}
	})
}

func TestKeyOfReleasedRecordIsGrantedOnlyIfKindAndTokenAreValid(t *testing.T) {
	onEachLayout(t, func(t *testing.T, b *bench) {
		_, held := b.hold()
		free, keeps := b.in(released, held)
		if !keeps {
			return
		}
		b.landsIn("grant", free, func() *protocol.Write { return b.Grant(b.grant(g9)) },
			b.where([]string{same, absent, grant, token, released, expired}, "native awslabs dynamolock", version, holder)...)
	})
}

func TestMethodOwnedReturnsTrueOnlyIfLayoutStoresOwner(t *testing.T) {
	onEachLayout(t, func(t *testing.T, b *bench) {
		b.hold()
		if shown := b.record().Owner; b.Owned() != (shown != "") {
			t.Errorf("Owned is %v, but the record has the owner %q", b.Owned(), shown)
		}
	})
}

// staysHeld checks that a held record still counts as held if one of its attributes has a
// strange value: DynamoDB must reject a grant of its key.
func (b *bench) staysHeld(name string, odd ...types.AttributeValue) {
	b.Helper()
	_, held := b.hold()
	for _, v := range odd {
		held[name] = v
		b.put(held)
		for _, exists := range []bool{false, true} {
			g := b.grant(g9)
			g.IfExists = exists
			if b.lands(b.Grant(g)) {
				b.Errorf("%s = %v frees a held record; IfExists: %v", name, v, exists)
			}
		}
	}
}

func TestHeldRecordWithNullGrantIDIsNotFree(t *testing.T) {
	onEachLayout(t, func(_ *testing.T, b *bench) { b.staysHeld("grantId", null) })
}

// In dynamolock and the library of awslabs, an attribute isReleased with any value frees the
// lock. Leasehold must not have that fault.
func TestRecordWithInvalidReleaseMarkIsNotFree(t *testing.T) {
	onEachLayout(t, func(_ *testing.T, b *bench) { b.staysHeld("isReleased", text("0"), text("true"), decimal("1"), null) })
}

func TestRepairDoesNotDeleteItemThatChangedAfterItWasRead(t *testing.T) {
	onEachLayout(t, func(t *testing.T, b *bench) {
		_, item := b.hold()
		// The item is damaged, because it has no grant id. It has one attribute of each type.
		delete(item, "grantId")
		maps.Copy(item, protocol.Item{
			"s": text("x"), "n": decimal("1.50"), "b": &types.AttributeValueMemberB{Value: []byte("x")},
			"bool": &types.AttributeValueMemberBOOL{Value: true}, "null": &types.AttributeValueMemberNULL{Value: true},
			"ss": &types.AttributeValueMemberSS{Value: []string{"x", "y"}}, "ns": &types.AttributeValueMemberNS{Value: []string{"1", "2"}},
			"bs": &types.AttributeValueMemberBS{Value: [][]byte{[]byte("x")}},
			"l":  &types.AttributeValueMemberL{Value: []types.AttributeValue{text("x")}},
			"m":  &types.AttributeValueMemberM{Value: protocol.Item{"s": text("x")}},
		})
		b.put(item)
		read := b.item()
		for name, v := range item {
			if name == b.Schema().Partition || name == b.Schema().Sort {
				continue
			}
			without, other := maps.Clone(item), maps.Clone(item)
			delete(without, name)
			other[name] = &types.AttributeValueMemberL{Value: []types.AttributeValue{v}}
			for what, now := range map[string]protocol.Item{"removed": without, "changed": other} {
				b.put(now)
				b.rejects(records.DeleteExactly(b.Protocol, read), "deleted, although attribute %s is %s", name, what)
			}
		}
		mended := maps.Clone(item)
		mended["grantId"] = text(g1)
		b.put(mended)
		b.rejects(records.DeleteExactly(b.Protocol, read), "deleted, although the item was repaired")
		b.put(item)
		if !b.lands(records.DeleteExactly(b.Protocol, read)) || b.item() != nil {
			t.Error("not deleted, although nothing has changed")
		}
		b.rejects(records.DeleteExactly(b.Protocol, read), "deleted again")
	})
}

func TestRepairDoesNotDeleteItemIfAttributeWasAddedAfterRead(t *testing.T) {
	onEachLayout(t, func(t *testing.T, b *bench) {
		_, item := b.hold()
		for name, v := range item {
			if name == b.Schema().Partition || name == b.Schema().Sort {
				continue
			}
			damaged := maps.Clone(item)
			delete(damaged, name)
			w := records.DeleteExactly(b.Protocol, damaged)
			b.put(item)
			b.rejects(w, "deleted, although attribute %s = %v was added", name, v)
		}
	})
}

func TestLeaseholdGrantWithoutTokenIsNotDecoded(t *testing.T) {
	onEachLayout(t, func(t *testing.T, b *bench) {
		_, item := b.hold()
		delete(item, "fencingToken")
		r, err := b.Decode(item)
		var bad *protocol.DecodeError
		if !errors.As(err, &bad) || bad.Attribute != "fencingToken" {
			t.Errorf("read %+v, %v", r, err)
		}
	})
}

func TestRenewedRecordKeepsGrantTime(t *testing.T) {
	onEachLayout(t, func(t *testing.T, b *bench) {
		g := b.grant(protocol.NewVersion())
		g.Now = protocol.VersionTime(g.Version)
		b.must(b.Grant(g))
		r := b.record()
		h := protocol.Hold{Key: g.Key, Owner: r.Owner, Grants: []string{g.Version}, Token: r.Token, Versions: []string{g.Version}}
		b.must(b.Renew(h, protocol.Renewal{Version: v2, Lease: lease, Now: g.Now.Add(time.Second)}))
		if at := b.record().GrantedAt; !at.Equal(g.Now) {
			t.Errorf("granted at %v, but GrantedAt is %v", g.Now, at)
		}
	})
}

func TestNumberOutsideDynamoDBRangeIsNotDecoded(t *testing.T) {
	onEachLayout(t, func(t *testing.T, b *bench) {
		for _, number := range []string{"1e200000000", "-1e-200000000", "1p200000000", "Inf", "1e301", "1e1e1", strings.Repeat("9", 400_000)} {
			_, item := b.hold()
			item["fencingToken"] = &types.AttributeValueMemberN{Value: number}
			_, err := b.Decode(item)
			var bad *protocol.DecodeError
			if !errors.As(err, &bad) || bad.Attribute != "fencingToken" || len(err.Error()) > 500 {
				t.Errorf("%.20s: %.200v", number, err)
			}
		}
	})
}
