package records_test

import (
	"maps"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
)

func TestDeleteExactlyRejectsItemChangedSinceRead(t *testing.T) {
	onEachLayout(t, func(t *testing.T, b *bench) {
		_, item := b.hold()
		// The item is damaged, and has one attribute of each type.
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
