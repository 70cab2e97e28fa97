package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/store"
)

func TestAWaitIsSaidOnceAndThenOnceAMinuteHoweverOftenTheHolderChanges(t *testing.T) {
	var stderr bytes.Buffer
	now := time.Unix(1e9, 0)
	w := newWaitReporter(newMessages(&output{to: &stderr}), &health{}, func() time.Time { return now })
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

func TestAnElectionSaysOnceAMinuteThatItWaitsHoweverOftenItWaits(t *testing.T) {
	var stderr bytes.Buffer
	now := time.Unix(1e9, 0)
	a := newApp(Env{Stderr: &stderr, Now: func() time.Time { return now }})
	s := &store.Store{}
	events := 0
	const minutes = 3
	for i := range minutes * 30 { // a term every two seconds
		a.wait = a.startWaitReporter(s)
		r := leasehold.Record{Key: leasehold.Key{Partition: "k"}, Owner: fmt.Sprint("owner", i), Grant: fmt.Sprint(i), Lease: time.Second}
		if a.wait.noteHolder(r, nil) {
			events++
		}
		if seen := a.wait.holdersSeen(); seen != 1 {
			t.Errorf("term %d: %d holders were waited for", i, seen)
		}
		a.wait.end()
		now = now.Add(2 * time.Second)
	}
	if lines := strings.Count(stderr.String(), "waiting for k, held by "); lines != minutes || events != minutes {
		t.Errorf("%d lines and %d events in %d minutes", lines, events, minutes)
	}
}

func TestNobodyIsWaitedForWhileAPermitMayBeFree(t *testing.T) {
	var stderr bytes.Buffer
	keys := leasehold.Keys("k/1", "k/2")
	permits := newPermitHolders("k", keys)
	w := newWaitReporter(newMessages(&output{to: &stderr}), &health{}, time.Now)
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
	if got := h.trouble().line(server{location: "eu-west-1"}); got != "DynamoDB has throttled every request for 1m0s: still trying: raise the table's capacity, or make it pay per request: ThrottlingException" {
		t.Error(got)
	}
	h.failed("connection refused", time.Now())
	if got := h.trouble().line(server{"~/locks.db", true}); got != "no answer from ~/locks.db for 1m0s: still trying: connection refused: find the process that keeps the file locked: leasehold doctor or fuser(1) names it" {
		t.Error(got)
	}
	h.answered()
	if got := h.trouble(); got != (trouble{answers: 1}) {
		t.Errorf("at last: %v", got)
	}
}

func TestTroubleThatComesAndGoesIsSaidOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stderr bytes.Buffer
		h := &health{}
		w := newWaitReporter(newMessages(&output{to: &stderr}), h, time.Now)
		const minutes = 5
		for range minutes * 6 { // ten seconds each: throttled, then answered
			h.throttled("ThrottlingException", time.Now())
			for range 8 {
				time.Sleep(time.Second)
				w.report()
			}
			h.answered()
			time.Sleep(2 * time.Second)
			w.report()
		}
		bad := strings.Count(stderr.String(), "has throttled every request for 3s")
		good := strings.Count(stderr.String(), "DynamoDB answers again, after 10s")
		if bad != minutes || good != minutes || strings.Count(stderr.String(), "\n") != bad+good {
			t.Errorf("in %d minutes: %s", minutes, &stderr)
		}
	})
}

func TestARequestWithoutAReplyIsTroubleBeforeItFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &health{}
		c := &call{}
		end := h.begin(c)
		time.Sleep(3 * time.Second)
		if got := h.trouble().line(server{location: "eu-west-1"}); !strings.HasPrefix(got, "no credentials for 3s: still trying: no request was sent yet: check what provides them: ") {
			t.Error(got)
		}
		h.sending(c)
		if got := h.trouble().line(server{location: "eu-west-1"}); got != "no answer from DynamoDB for 3s: still trying: no reply from eu-west-1: check the network, the region and the endpoint" {
			t.Error(got)
		}
		end()
		if got := h.trouble(); got.lasts != 0 {
			t.Errorf("after the call: %v", got)
		}
	})
}
