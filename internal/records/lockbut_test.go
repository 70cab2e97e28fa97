package records

import (
	"testing"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

// While a fleet moves, each layout reads rows of native.
func TestLockButRejectsSessionRow(t *testing.T) {
	rows := map[string]protocol.Item{
		"a shared lease": with(protocol.Item{"key": text(SessionPrefix + "abcdefghijklmnopqrstuvwxyz"), attrKind: text("session")}),
	}
	for _, l := range []layout.Layout{layout.Native{}, layout.AWSLabs{}, layout.Dynamolock{}} {
		p := mustProtocol(t, l)
		for what, item := range rows {
			if r, ok := LockBut(p, item, attrKind); ok {
				t.Errorf("%s: %s is said to be a lock but for its kind, held by %s", l.Name(), what, r.Owner)
			}
		}
		for _, kind := range []string{"invoice", "session", "rw"} { // kinds that users may have chosen
			if r, ok := LockBut(p, with(protocol.Item{attrKind: text(kind)}), attrKind); !ok || r.Released {
				t.Errorf("%s: a lock beside the attribute kind, %s, is not said to be held", l.Name(), kind)
			}
		}
	}
}

func TestLockButAcceptsFreeRecord(t *testing.T) {
	for _, l := range []layout.Layout{layout.Native{}, layout.AWSLabs{}, layout.Dynamolock{}} {
		p := mustProtocol(t, l)
		for name, own := range map[string]protocol.Item{
			"kind":           {attrKind: text("invoice")},
			"token":          {attrToken: text("none")},
			"kind and token": {attrKind: text("invoice"), attrToken: text("none")},
		} {
			own[attrReleased] = released
			attribute := attrKind
			if own[attrKind] == nil {
				attribute = attrToken
			}
			if r, ok := LockBut(p, with(own), attribute); !ok || !r.Released {
				t.Errorf("%s: %s: %+v, %v", l.Name(), name, r, ok)
			}
		}
		if r, ok := LockBut(p, with(protocol.Item{attrReleased: text("no"), attrOwner: number(1)}), attrReleased); ok {
			t.Errorf("%s: an owner that is damaged, too: %+v", l.Name(), r)
		}
	}
}
