package records

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

// While a fleet moves, each of them reads the rows of native.
func TestARowOfNativesOtherKindsIsNoLockThatAnAttributeHides(t *testing.T) {
	none := &types.AttributeValueMemberM{}
	rows := map[string]protocol.Item{
		"a shared lease":                    with(protocol.Item{"key": text(SessionPrefix + "abcdefghijklmnopqrstuvwxyz"), attrKind: text("session")}),
		"a read/write lock with readers":    with(protocol.Item{attrKind: text("rw"), attrReaders: none}),
		"a read/write lock with its writer": with(protocol.Item{attrKind: text("rw"), attrWriter: none}),
	}
	for _, l := range []layout.Layout{layout.Native{}, layout.AWSLabs{}, layout.Dynamolock{}} {
		p := mustProtocol(t, l)
		for what, item := range rows {
			if r, held := HeldBut(p, item, attrKind); held {
				t.Errorf("%s: %s is said to be a lock but for its kind, held by %s", l.Name(), what, r.Owner)
			}
		}
		for _, kind := range []string{"invoice", "session", "rw"} { // of a user's own
			if _, held := HeldBut(p, with(protocol.Item{attrKind: text(kind)}), attrKind); !held {
				t.Errorf("%s: a lock beside the attribute kind, %s, is not said to be held", l.Name(), kind)
			}
		}
	}
}
