package ui

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/layout"
)

func TestAKeyThatOftenHasNoRecordIsForgottenNoSoonerThanOthers(t *testing.T) {
	proto, err := records.Of(layout.Native{})
	if err != nil {
		t.Fatal(err)
	}
	b := newBoard(proto, rules{})
	var now time.Duration
	look := func() Look {
		now += time.Second
		return at(now)
	}
	see := func(key string) {
		b.see(protocol.Item{"key": &types.AttributeValueMemberS{Value: key}}, look())
	}
	seeNone := func(key string) { b.seeNone(protocol.Key{Partition: key}, look()) }
	see("other")
	seeNone("other")
	for range mostGone + 1 {
		see("job")
		seeNone("job")
	}
	see("job")
	see("other")
	for i, key := range []string{"other", "job"} {
		e := b.entries[protocol.Key{Partition: key}]
		if e == nil || e.id != i+1 {
			t.Errorf("%s is %+v: its history is lost", key, e)
		}
	}
}
