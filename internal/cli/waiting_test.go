package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
)

func TestAWaitIsSaidOnceAndThenOnceAMinuteHoweverOftenTheHolderChanges(t *testing.T) {
	var stderr bytes.Buffer
	now := time.Unix(1e9, 0)
	w := newWaitReporter(newMessages(Env{Stderr: &stderr}), &health{}, func() time.Time { return now })
	events := 0
	const minutes = 5
	for i := range minutes * 600 { // ten holders a second
		r := leasehold.Record{Key: leasehold.Key{Partition: "k"}, Owner: fmt.Sprint("owner", i), Grant: fmt.Sprint(i), Lease: time.Second}
		if w.noteHolder(r, nil) {
			events++
		}
		now = now.Add(time.Second / 10)
	}
	if lines := strings.Count(stderr.String(), "waiting for k, held by "); lines != minutes || events != minutes {
		t.Errorf("%d lines and %d events in %d minutes", lines, events, minutes)
	}
	if w.holdersSeen() != minutes*600 {
		t.Errorf("%d holders", w.holdersSeen())
	}
}

func TestNobodyIsWaitedForWhileAPermitMayBeFree(t *testing.T) {
	var stderr bytes.Buffer
	keys := leasehold.Keys("k/1", "k/2")
	permits := newPermitHolders("k", keys)
	w := newWaitReporter(newMessages(Env{Stderr: &stderr}), &health{}, time.Now)
	for i, key := range keys {
		r := leasehold.Record{Key: key, Owner: "o", Grant: fmt.Sprint(i), Lease: time.Second}
		permits.add(r)
		if due := w.noteHolder(r, permits); due != (i == 1) || (w.holdersSeen() > 0) != due {
			t.Errorf("permit %d: an event is due: %v, %d holders were waited for", i+1, due, w.holdersSeen())
		}
	}
}

func TestTroubleSaysWhatToDo(t *testing.T) {
	h := &health{}
	if got := h.trouble(); got != (trouble{}) {
		t.Errorf("at first: %v", got)
	}
	h.throttled("ThrottlingException", time.Now().Add(-time.Minute))
	if got := h.trouble().line("DynamoDB"); got != "DynamoDB has throttled every request for 1m0s: still trying: raise the table's capacity, or make it pay per request: ThrottlingException" {
		t.Error(got)
	}
	h.failed("connection refused", time.Now())
	if got := h.trouble().line("~/locks.db"); got != "no answer from ~/locks.db for 1m0s: still trying: connection refused: check the network, the region and the endpoint" {
		t.Error(got)
	}
	h.answered()
	if got := h.trouble(); got != (trouble{}) {
		t.Errorf("at last: %v", got)
	}
}
