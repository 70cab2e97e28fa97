package acquire_test

import (
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/acquire"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

func TestHandOverRecordIsReusedAtMostOnceAndForTwoSeconds(t *testing.T) {
	var l acquire.Left
	key := protocol.Key{Partition: "job"}
	at := func(d time.Duration) decide.Instant { return decide.Instant{Mono: time.Hour + d} }
	for after, want := range map[time.Duration]bool{0: true, 2*time.Second - 1: true, 2 * time.Second: false} {
		l.Note(key, protocol.Item{}, at(0))
		if _, sent, ok := l.Take(key, at(after)); ok != want || sent != at(0) && ok {
			t.Errorf("after %v: %v, sent at %v", after, ok, sent)
		}
		if _, _, ok := l.Take(key, at(after)); ok {
			t.Errorf("after %v: taken twice", after)
		}
	}
}

func TestHandOverRecordsOfSeveralKeysAreKept(t *testing.T) {
	var l acquire.Left
	old, key := protocol.Key{Partition: "old"}, protocol.Key{Partition: "job"}
	at := func(d time.Duration) decide.Instant { return decide.Instant{Mono: time.Hour + d} }
	l.Note(old, protocol.Item{}, at(0))
	l.Note(key, protocol.Item{}, at(time.Second))
	for _, k := range []protocol.Key{old, key} {
		if _, _, ok := l.Take(k, at(1500*time.Millisecond)); !ok {
			t.Errorf("%s is forgotten", k)
		}
	}
}
