package attempts

import (
	"errors"
	"reflect"

	"github.com/aws/smithy-go/middleware"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Walk is the progress of a listing that reads the items of a table page by page. The zero
// Walk is at the beginning of the table. It is not safe for concurrent use.
//
// A listing may have any number of pages: a table may be of any size, and a filter makes
// pages empty. But each page of DynamoDB ends at a later key than all pages before it. If a
// broken server ended pages at the same keys again and again, the listing would never end.
// To find a repeated key, Walk keeps the end of one earlier page. Walk replaces the kept
// key by a newer key after 1, 2, 4 and 8 more pages, and so on, after twice as many pages
// each time (Brent, "An improved Monte Carlo factorization algorithm", 1980).
type Walk struct {
	Start protocol.Item // key at which the next page starts; empty at the beginning and at the end of the table

	kept        protocol.Item // key at which an earlier page ended
	since, most int           // number of pages since kept was set, and number of pages after which kept is replaced
}

// Pass advances w past a page that was read from Start. next is the key at which the
// following page starts. If DynamoDB cannot have sent the page, Pass returns an error and
// leaves Start unchanged. If next is a repeated key, the error is a *Failure with the cause
// Refused, so that the client does not retry.
func (w *Walk) Pass(reply middleware.Metadata, items []protocol.Item, next protocol.Item) error {
	if items == nil {
		if err := missing(reply, "items"); err != nil { // DynamoDB sends an empty list of items for an empty page, and does not omit the list
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
