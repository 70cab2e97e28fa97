package seek_test

import (
	"errors"
	"testing"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

func TestATryDoesNotTakeASessionForAliveBecauseItWasAMomentAgo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		row := w.underSession("job")
		c := w.client("me")
		if _, err := c.One(t.Context(), c.want("job", noWait)); !errors.As(err, new(*heldError)) {
			t.Fatalf("its holder lives: %v", err)
		}
		session := w.proto.(protocol.Sharing).Session()
		r, err := session.Decode(w.item(row))
		if err != nil {
			t.Fatal(err)
		}
		w.write(session.Break(r, protocol.Break{Version: protocol.NewVersion()})) // as its own client does when it closes
		c.one("job", noWait)
	})
}
