package records_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

func TestLeaseholdGrantWithoutTokenIsDecodeError(t *testing.T) {
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
		if !b.lands(b.Grant(g)) {
			t.Fatal("not granted")
		}
		r := b.record()
		h := protocol.Hold{Key: g.Key, Owner: r.Owner, Grants: []string{g.Version}, Token: r.Token, Versions: []string{g.Version}}
		if !b.lands(b.Renew(h, protocol.Renewal{Version: v2, Lease: lease, Now: g.Now.Add(time.Second)})) {
			t.Fatal("not renewed")
		}
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
