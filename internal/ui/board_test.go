package ui

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/liveness"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/layout"
)

func TestBoardForgetsDeletedKeysOldestFirst(t *testing.T) {
	proto := lab.Must(records.Of(layout.Native{}))(t)
	b := newBoard(proto, liveness.Rule{})
	var now time.Duration
	look := func() liveness.Reading {
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
	if b.forgotten != (time.Time{}) {
		t.Errorf("something was forgotten at %v", b.forgotten)
	}
	for i := range mostGone + 1 {
		key := fmt.Sprint("once/", i)
		see(key)
		seeNone(key)
	}
	see("once/0")
	if e := b.entries[protocol.Key{Partition: "once/0"}]; !e.history.Since.Equal(b.forgotten) || b.forgotten.IsZero() {
		t.Errorf("a key that was forgotten at %v is known since %v", b.forgotten, e.history.Since)
	}
	for i, key := range []string{"other", "job"} {
		e := b.entries[protocol.Key{Partition: key}]
		if e == nil || e.id != i+1 {
			t.Errorf("%s is %+v: its history is lost", key, e)
		}
	}
}
