package cli

import (
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
)

func TestAListAtATerminalMarksLocksUnderASharedLease(t *testing.T) {
	now := time.Now()
	for session, want := range map[string]string{"": "20s", "id": "20s shared"} {
		r := row{record: leasehold.Record{Key: leasehold.Key{Partition: "job"}, Owner: "host", Lease: 20 * time.Second, Session: session}}
		if lease := (listing{terminal: true}).cells(r, now)[3]; lease != want {
			t.Errorf("session %q: %q", session, lease)
		}
		if lease := (listing{}).cells(r, now)[3]; lease != "20s" {
			t.Errorf("session %q in a pipe: %q", session, lease)
		}
	}
}
