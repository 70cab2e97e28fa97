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

// waitsCalmly makes a call that waits for a minute, for two requests each 25 ms at most: one
// for the holder's record, and one for its session's row. It returns the call's error.
func waitsCalmly(w *lab.World, c *leasehold.Client, wire *lab.Wire) error {
	w.T.Helper()
	ctx, cancel := context.WithTimeout(w.T.Context(), time.Minute)
	defer cancel()
	lock, err := c.Acquire(ctx, "job")
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

// A client that may write a key can store anything in the key's record. Whatever the record
// contains, the key's waiters must pause between their reads.
func TestWaiterReadsAtMostEvery25msForEveryRecord(t *testing.T) {
	base := func(more map[string]types.AttributeValue) map[string]types.AttributeValue {
		item := map[string]types.AttributeValue{
			"key": lab.Str("job"), "ownerName": lab.Str("java"), "leaseDuration": lab.Str("1"), "recordVersionNumber": lab.Str("v"),
		}
		maps.Copy(item, more)
		return item
	}
	ours := "mallory/abcdefghijklmnopqrstuvwxyz"
	records := map[string]map[string]types.AttributeValue{
		"a token that is no number":      base(map[string]types.AttributeValue{"fencingToken": lab.Str("1")}),
		"a token out of range":           base(map[string]types.AttributeValue{"fencingToken": lab.Num("1e30")}),
		"a token below zero":             base(map[string]types.AttributeValue{"fencingToken": lab.Num("-1")}),
		"a token that is a fraction":     base(map[string]types.AttributeValue{"fencingToken": lab.Num("1.5")}),
		"a last token":                   base(map[string]types.AttributeValue{"fencingToken": lab.Num("9007199254740990")}),
		"a grant id of another type":     base(map[string]types.AttributeValue{"grantId": lab.Num("1")}),
		"a kind":                         base(map[string]types.AttributeValue{"kind": lab.Str("rw")}),
		"an odd release mark":            base(map[string]types.AttributeValue{"isReleased": lab.Num("1")}),
		"an odd release mark, a string":  base(map[string]types.AttributeValue{"isReleased": lab.Str("0")}),
		"no lease":                       base(map[string]types.AttributeValue{"leaseDuration": lab.Str("-1")}),
		"a session that is not there":    base(map[string]types.AttributeValue{"ownerName": lab.Str(ours), "grantId": lab.Str(protocol.NewVersion()), "recordVersionNumber": lab.Str(protocol.NewVersion()), "fencingToken": lab.Num("1"), "session": lab.Str("abcdefghijklmnopqrstuvwxyz")}),
		"ours with the lease of a blink": base(map[string]types.AttributeValue{"ownerName": lab.Str(ours), "grantId": lab.Str(protocol.NewVersion()), "recordVersionNumber": lab.Str(protocol.NewVersion()), "fencingToken": lab.Num("1")}),
	}
	for name, item := range records {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.Config())
				w.Put(item)
				waitsCalmly(w, c, wire)
			})
		})
	}
	id := "abcdefghijklmnopqrstuvwxyz"
	for name, moving := range map[string]func() map[string]types.AttributeValue{
		"a version that changes with every request": func() map[string]types.AttributeValue {
			return base(map[string]types.AttributeValue{"recordVersionNumber": lab.Str(protocol.NewVersion())})
		},
		"a grant that changes with every request": func() map[string]types.AttributeValue {
			v := lab.Str(protocol.NewVersion())
			return base(map[string]types.AttributeValue{"ownerName": lab.Str(ours), "recordVersionNumber": v, "grantId": v, "fencingToken": lab.Num("1")})
		},
		"a session whose version changes with every request": func() map[string]types.AttributeValue {
			v := lab.Str(protocol.NewVersion())
			return base(map[string]types.AttributeValue{
				"key": lab.Str("leasehold/session/" + id), "kind": lab.Str("session"), "ownerName": lab.Str("mallory/" + id),
				"recordVersionNumber": v, "grantId": v, "fencingToken": lab.Num("1"),
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.Config())
				w.Put(base(map[string]types.AttributeValue{
					"ownerName": lab.Str("mallory/" + id), "grantId": lab.Str(protocol.NewVersion()), "recordVersionNumber": lab.Str(protocol.NewVersion()),
					"fencingToken": lab.Num("1"), "session": lab.Str(id), "leaseDuration": lab.Str("3600000"),
				}))
				wire.SetFault(func(r *lab.Request) (*http.Response, error) {
					w.Put(moving())
					return r.Send()
				})
				if err := waitsCalmly(w, c, wire); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("it ended with %v", err)
				}
			})
		})
	}
}

// A client that may write the rows of shared leases can end each of these leases, and can
// keep a dead one alive. The content of such a row has no other effect.
func TestForgedSessionRowDoesNotCauseExtraRequests(t *testing.T) {
	id := "abcdefghijklmnopqrstuvwxyz"
	mallory := lab.Str("mallory/" + id)
	for name, forged := range map[string]map[string]types.AttributeValue{
		"a lease without end":           {"leaseDuration": lab.Str("9223372036854775807")},
		"a lease of nothing":            {"leaseDuration": lab.Str("0")},
		"a lease below zero":            {"leaseDuration": lab.Str("-9223372036854775808")},
		"a lease that no clock can say": {"leaseDuration": lab.Str("1e200000000")},
		"a lease of another type":       {"leaseDuration": lab.Num("20000")},
		"another's":                     {"ownerName": lab.Str("bob/" + protocol.NewVersion())},
		"a lock":                        {"kind": nil},
		"a row that is under itself":    {"session": lab.Str(id)},
		"words of no kind":              {"brokenGrants": lab.Str("all")},
	} {
		t.Run(name, func(t *testing.T) {
			lab.InBubble(t, func(t *testing.T, w *lab.World) {
				c, wire := w.Client(lab.Config())
				v := lab.Str(protocol.NewVersion())
				w.Put(map[string]types.AttributeValue{
					"key": lab.Str("job"), "ownerName": mallory, "grantId": v, "recordVersionNumber": v,
					"fencingToken": lab.Num("1"), "session": lab.Str(id), "leaseDuration": lab.Str("3600000"),
				})
				row := "leasehold/session/" + id
				w.Put(map[string]types.AttributeValue{
					"key": lab.Str(row), "kind": lab.Str("session"), "ownerName": mallory, "grantId": v, "recordVersionNumber": v,
					"fencingToken": lab.Num("1"), "leaseDuration": lab.Str("20000"),
				})
				w.Update(row, forged)
				waitsCalmly(w, c, wire)
			})
		})
	}
}
