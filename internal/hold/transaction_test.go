package hold_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestCommitReadsRecordIfRejectionOmitsIt(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, wire := w.Work().Client(lab.Config())
		lock := w.Acquire(c, "job")
		w.Steal("job")
		wire.SetFault(lab.Respond(lab.Call.Commits, func() *http.Response { return lab.Cancellation("None", "ConditionalCheckFailed") }))
		var lost *leasehold.LostError
		if err := lock.Commit(t.Context(), lab.Writes(lab.Note("a", "1"))); !errors.As(err, &lost) || lost.Reason != leasehold.LostReplaced || lost.By == nil {
			t.Errorf("commit: %v", err)
		}
	})
}
