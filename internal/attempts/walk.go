package attempts

import (
	"errors"
	"reflect"

	"github.com/aws/smithy-go/middleware"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Walk is the progress of one listing through a table, page by page. The zero Walk is at
// its beginning. It is not safe for concurrent use.
//
// Nothing bounds the pages of an honest table: it may be of any size, and a filter makes
// pages empty. But each ends further on than all before it, so a repeated key reveals a
// server whose listing would never end. To find that, Walk keeps one earlier key, and
// replaces it after twice as many pages as the last time (Brent, "An improved Monte Carlo
// factorization algorithm", 1980).
type Walk struct {
	Start protocol.Item // start of the next page; empty at the beginning, and at the end

	kept        protocol.Item // where an earlier page ended
	since, most int           // pages since then, and until another is kept
}

// Pass continues past a page that was read from Start and that names the start of the next.
// It returns an error if the page cannot be DynamoDB's, and leaves Start unchanged. A
// repeated key is a *Failure that a retry cannot help: it would only skip that key.
func (w *Walk) Pass(reply middleware.Metadata, items []protocol.Item, next protocol.Item) error {
	if items == nil {
		if err := missing(reply, "items"); err != nil { // an empty page has an empty list
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
