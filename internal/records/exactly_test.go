package records_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
)

func TestDeleteExactlyRejectsItemChangedSinceRead(t *testing.T) {
	onEachLayout(t, func(t *testing.T, b *bench) {
		_, item := b.hold()
		// The item is damaged, because it has no grant id. It has one attribute of each
		// type.
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
			for what, now := range map[string]protocol.Item{"gone": without, "another": other} {
				b.put(now)
				if b.lands(records.DeleteExactly(b.Protocol, read)) {
					t.Errorf("deleted, though %s is %s", name, what)
				}
			}
		}
		mended := maps.Clone(item)
		mended["grantId"] = text(g1)
		b.put(mended)
		if b.lands(records.DeleteExactly(b.Protocol, read)) {
			t.Error("deleted, though it was mended")
		}
		b.put(item)
		if !b.lands(records.DeleteExactly(b.Protocol, read)) || b.item() != nil {
			t.Error("not deleted, though nothing has changed")
		}
		if b.lands(records.DeleteExactly(b.Protocol, read)) {
			t.Error("deleted again")
		}
	})
}

func TestDeleteExactlyKeepsItemWithAddedAttribute(t *testing.T) {
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
			if b.lands(w) {
				t.Errorf("deleted, though %s, which is %v, has been added", name, v)
			}
		}
	})
}

func TestDecodeRejectsLeaseholdGrantWithoutToken(t *testing.T) {
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
			t.Errorf("granted at %v, and the record says %v", g.Now, at)
		}
	})
}

func TestNumberBeyondDynamoDBRangeIsRefusedQuickly(t *testing.T) {
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
