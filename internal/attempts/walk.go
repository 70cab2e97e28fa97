package attempts

import (
	"errors"
	"reflect"

	"github.com/aws/smithy-go/middleware"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Walk is the way of one listing through a table, page by page. The zero Walk is at its
// beginning. It is not safe for concurrent use.
//
// Nothing bounds the pages of an honest table: it may be of any size, and a filter makes
// pages empty. But each ends further on than all before it, so that a key that comes
// again shows a server whose listing would never end. To find that, one earlier key is
// kept, and another in its place after twice as many pages as the last time (Brent, "An
// improved Monte Carlo factorization algorithm", 1980).
type Walk struct {
	Start protocol.Item // of the next page; empty at the beginning, and at the end

	kept        protocol.Item // where an earlier page ended
	since, most int           // pages since then, and until another is kept
}

// Pass goes on past a page that was read from Start and that says where the next one
// starts. The error says why it cannot be DynamoDB's, and then Start stays. That a key has
// come again is a *Failure of which a retry is of no use: it would only pass that key.
func (w *Walk) Pass(reply middleware.Metadata, items []protocol.Item, next protocol.Item) error {
	if items == nil {
		if err := missing(reply, "items"); err != nil { // not even none
			return err
		}
	}
	if w.most == 0 {
		w.kept, w.most = w.Start, 1
	}
	if len(next) > 0 && reflect.DeepEqual(next, w.kept) {
		return &Failure{Cause: decide.Refused, Err: &ForeignError{"the endpoint", errors.New("a page ends where one before it did, and says that there is more")}}
	}
	if w.since++; w.since == w.most {
		w.kept, w.since, w.most = next, 0, 2*w.most
	}
	w.Start = next
	return nil
}
