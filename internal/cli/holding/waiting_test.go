package holding

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/say"
)

// userAt is a user who reads w, and whose clock reads now.
func userAt(w io.Writer, now func() time.Time) User {
	return User{Say: say.NewMessages(&say.Output{To: w}), Now: now}
}

func TestAWaitIsSaidOnceAndThenOnceAMinuteHoweverOftenTheHolderChanges(t *testing.T) {
	var stderr bytes.Buffer
	now := time.Unix(1e9, 0)
	w := newWait(userAt(&stderr, func() time.Time { return now }), nil)
	events := 0
	const minutes = 5
	for i := range minutes * 600 { // ten holders a second
		r := leasehold.Record{Key: leasehold.Key{Partition: "k"}, Owner: fmt.Sprint("owner", i), Grant: fmt.Sprint(i), Lease: time.Second}
		if w.noteHolder(r, 0, nil) {
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
	user := userAt(&stderr, func() time.Time { return now })
	var w *wait
	events := 0
	const minutes = 3
	for i := range minutes * 30 { // a term every two seconds
		w = newWait(user, w)
		w.start()
		r := leasehold.Record{Key: leasehold.Key{Partition: "k"}, Owner: fmt.Sprint("owner", i), Grant: fmt.Sprint(i), Lease: time.Second}
		if w.noteHolder(r, 0, nil) {
			events++
		}
		if seen := w.holdersSeen(); seen != 1 {
			t.Errorf("term %d: %d holders were waited for", i, seen)
		}
		w.end()
		now = now.Add(2 * time.Second)
	}
	if lines := strings.Count(stderr.String(), "waiting for k, held by "); lines != minutes || events != minutes {
		t.Errorf("%d lines and %d events in %d minutes", lines, events, minutes)
	}
}

func TestNobodyIsWaitedForWhileAPermitMayBeFree(t *testing.T) {
	var stderr bytes.Buffer
	keys := leasehold.Keys("k/1", "k/2")
	permits := (&Wanted{Keys: []string{"k"}, Permits: 2}).allHeld(keys)
	w := newWait(userAt(&stderr, time.Now), nil)
	for i, key := range keys {
		r := leasehold.Record{Key: key, Owner: "o", Grant: fmt.Sprint(i), Lease: time.Second}
		if due := w.noteHolder(r, 0, permits); due != (i == 1) || (w.holdersSeen() > 0) != due {
			t.Errorf("permit %d: an event is due: %v, %d holders were waited for", i+1, due, w.holdersSeen())
		}
	}
}

func TestWhoWaitsIsToldWhatTheHolderSaysOfItsWork(t *testing.T) {
	for data, want := range map[string]string{
		"deploying v42":          "held by o: deploying v42\n",
		"":                       "held by o\n",
		"two\nlines":             "held by o\n",
		strings.Repeat("a", 200): "held by o\n",
	} {
		var stderr bytes.Buffer
		newWait(userAt(&stderr, time.Now), nil).noteHolder(leasehold.Record{Key: leasehold.Key{Partition: "k"}, Owner: "o", Grant: "g", Data: []byte(data)}, 0, nil)
		if got := stderr.String(); !strings.HasSuffix(got, want) {
			t.Errorf("%q", got)
		}
	}
}

func TestWhoStandsInLineIsToldItsPlace(t *testing.T) {
	var stderr bytes.Buffer
	w := newWait(userAt(&stderr, time.Now), nil)
	w.noteHolder(leasehold.Record{Key: leasehold.Key{Partition: "k"}, Owner: "o", Grant: "g", Lease: time.Second}, 3, nil)
	if got := stderr.String(); !strings.Contains(got, "waiting for k, 3rd in line, held by o") {
		t.Error(got)
	}
}
