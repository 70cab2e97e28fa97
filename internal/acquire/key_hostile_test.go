package acquire_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// waitsCalmly makes a call that waits for up to a minute, and returns its error. Every 25 ms
// the call may send one read of the holder's record and one of its session's row. The test
// fails if the call sends more.
func waitsCalmly(w *lab.World, c *leasehold.Client, wire *lab.Wire) error {
	w.T.Helper()
	lock, err := c.Acquire(w.Within(time.Minute), "job")
	if n := len(wire.Sent()); n > 2*60*40 {
		w.T.Errorf("%d requests in a minute", n)
	}
	if err == nil {
		w.Release(lock)
	} else if !errors.Is(err, context.DeadlineExceeded) && !errors.As(err, new(*leasehold.RecordError)) {
		w.T.Error(err)
	}
	return err
}

type item = map[string]types.AttributeValue

// merged returns an item with the attributes of all given items. If several have an
// attribute of the same name, the last one counts.
func merged(items ...item) item {
	all := item{}
	for _, one := range items {
		maps.Copy(all, one)
	}
	return all
}

const (
	malloryID = "abcdefghijklmnopqrstuvwxyz"
	malloryAt = "leasehold/session/" + malloryID // key of the row of Mallory's session
)

var (
	javas       = item{"key": lab.Str("job"), "ownerName": lab.Str("java"), "leaseDuration": lab.Str("1"), "recordVersionNumber": lab.Str("v")}
	underShared = item{"session": lab.Str(malloryID), "leaseDuration": lab.Str("3600000")}
	ofShared    = item{"key": lab.Str(malloryAt), "kind": lab.Str("session")}
)

// mallorys returns the record of a grant by client Mallory, as leasehold writes it, but
// with a lease of 1 ms. The items in more override its attributes.
func mallorys(more ...item) item {
	v := lab.Str(protocol.NewVersion())
	grant := item{"ownerName": lab.Str("mallory/" + malloryID), "grantId": v, "recordVersionNumber": v, "fencingToken": lab.Num("1")}
	return merged(javas, grant, merged(more...))
}

// A client that may write a key can store anything in the key's record. Whatever the
// record contains, the key's waiters must still pause between their reads.
func TestWaiterReadsAtMostEvery25msWhateverRecordContains(t *testing.T) {
	lab.Each(t, map[string]item{
		"a token that is no number":      {"fencingToken": lab.Str("1")},
		"a token out of range":           {"fencingToken": lab.Num("1e30")},
		"a token below zero":             {"fencingToken": lab.Num("-1")},
		"a token that is a fraction":     {"fencingToken": lab.Num("1.5")},
		"a last token":                   {"fencingToken": lab.Num("9007199254740990")},
		"a grant id of another type":     {"grantId": lab.Num("1")},
		"a kind":                         {"kind": lab.Str("rw")},
		"an odd release mark":            {"isReleased": lab.Num("1")},
		"an odd release mark, a string":  {"isReleased": lab.Str("0")},
		"no lease":                       {"leaseDuration": lab.Str("-1")},
		"a session that is not there":    mallorys(item{"session": lab.Str(malloryID)}),
		"ours with the lease of a blink": mallorys(),
	}, func(_ *testing.T, w *lab.World, odd item) {
		c, wire := w.Client(lab.Config())
		w.Put(merged(javas, odd))
		waitsCalmly(w, c, wire)
	})
	lab.Each(t, map[string]func() item{
		"a version that changes with every request": func() item {
			return merged(javas, item{"recordVersionNumber": lab.Str(protocol.NewVersion())})
		},
		"a grant that changes with every request":            func() item { return mallorys() },
		"a session whose version changes with every request": func() item { return mallorys(ofShared) },
	}, func(t *testing.T, w *lab.World, moving func() item) {
		c, wire := w.Client(lab.Config())
		w.Put(mallorys(underShared))
		wire.SetFault(func(r *lab.Request) (*http.Response, error) {
			w.Put(moving())
			return r.Send()
		})
		if err := waitsCalmly(w, c, wire); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it ended with %v", err)
		}
	})
}

// A client that may write the rows of shared leases can end any of these leases, and can
// keep the lease of a dead client alive. What it writes must have no other effect.
func TestForgedSessionRowDoesNotCauseExtraRequests(t *testing.T) {
	lab.Each(t, map[string]item{
		"a lease without end":           {"leaseDuration": lab.Str("9223372036854775807")},
		"a lease of nothing":            {"leaseDuration": lab.Str("0")},
		"a lease below zero":            {"leaseDuration": lab.Str("-9223372036854775808")},
		"a lease that no clock can say": {"leaseDuration": lab.Str("1e200000000")},
		"a lease of another type":       {"leaseDuration": lab.Num("20000")},
		"another's":                     {"ownerName": lab.Str("bob/" + protocol.NewVersion())},
		"a lock":                        {"kind": nil},
		"a row that is under itself":    {"session": lab.Str(malloryID)},
		"words of no kind":              {"brokenGrants": lab.Str("all")},
	}, func(_ *testing.T, w *lab.World, forged item) {
		c, wire := w.Client(lab.Config())
		w.Put(mallorys(underShared))
		w.Put(mallorys(ofShared, item{"leaseDuration": lab.Str("20000")}))
		w.Update(malloryAt, forged)
		waitsCalmly(w, c, wire)
	})
}
