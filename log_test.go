package leasehold_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestWhatWasLostOrNotReleasedIsLoggedWithItsTable(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		var said bytes.Buffer
		cfg := lab.Config()
		cfg.Logger = slog.New(slog.NewTextHandler(&said, nil))
		c, wire := w.Client(cfg)
		lost, kept := w.Acquire(c, "lost"), w.Acquire(c, "kept")
		if err := c.Break(t.Context(), lost.Record()); err != nil {
			t.Fatal(err)
		}
		_ = lost.Renew(t.Context())
		wire.SetFault(lab.Answer(func() *http.Response { return lab.Refusal(400, "AccessDeniedException") }))
		_ = kept.Release(t.Context())
		cfg.SharedLease = true
		sharing, itsWire := w.Client(cfg)
		w.Acquire(sharing, "shared")
		itsWire.SetFault(lab.Answer(func() *http.Response { return lab.Refusal(400, "AccessDeniedException") }))
		_ = sharing.Close(t.Context())
		for _, what := range []string{"lock lost", "release failed", "the session could not be ended"} {
			named := false
			for line := range strings.Lines(said.String()) {
				named = named || strings.Contains(line, what) && strings.Contains(line, "table=locks")
			}
			if !named {
				t.Errorf("%q does not name the table:\n%s", what, said.String())
			}
		}
	})
}
