package attempts

import (
	"errors"
	"reflect"

	"github.com/aws/smithy-go/middleware"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Walk is the progress of one listing through a table, page by page. The zero Walk is at
// the beginning of the table. It is not safe for concurrent use.
//
// The number of pages has no bound: a table may be of any size, and a filter makes pages
// empty. But each page of an honest server ends further on than all earlier pages. So a
// repeated key reveals a server whose listing would never end. To find a repeated key, Walk
// keeps one earlier key. Walk replaces that key after twice as many pages as the last time
// (Brent, "An improved Monte Carlo factorization algorithm", 1980).
type Walk struct {
	Start protocol.Item // where the next page starts; empty at the beginning and at the end

	kept        protocol.Item // where an earlier page ended
	since, most int           // pages read since kept was set, and the number after which kept is replaced
}

// Pass continues past a page that was read from Start. next is the key at which the
// following page starts. If the page cannot be DynamoDB's, Pass returns an error and leaves
// Start unchanged. If a key is repeated, the error is a *Failure that is not retried, as a
// retry would only skip that key.
func (w *Walk) Pass(reply middleware.Metadata, items []protocol.Item, next protocol.Item) error {
	if items == nil {
		if err := missing(reply, "items"); err != nil { // in a reply of DynamoDB, an empty page has an empty list, not a missing one
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
