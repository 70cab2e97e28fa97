package behaviour_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestLogLinesOfLossAndFailedReleaseContainTable(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		var said bytes.Buffer
		cfg := lab.Config()
		cfg.Logger = slog.New(slog.NewTextHandler(&said, nil))
		c, wire := w.Client(cfg)
		lost, kept := w.Acquire(c, "lost"), w.Acquire(c, "kept")
		if err := c.Break(t.Context(), lost.Record(), leasehold.BreakOptions{}); err != nil {
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

func TestLogsShowLocksAndRecordsWithoutData(t *testing.T) {
	lab.InBubble(t, func(t *testing.T, w *lab.World) {
		c, _ := w.Client(lab.Config())
		lock := w.Acquire(c, "job", leasehold.WithData([]byte("secret")),
			leasehold.WithAttributes(map[string]types.AttributeValue{"mine": lab.Str("secret")}))
		record := lock.Record()
		token := fmt.Sprint(lock.Token())
		if got, want := fmt.Sprint(lock), "job in table locks (token "+token+")"; got != want {
			t.Errorf("a lock reads %q, want %q", got, want)
		}
		if got := fmt.Sprint((*leasehold.Lock)(nil), &leasehold.Lock{}); got != "no lock no lock" {
			t.Errorf("locks that are none read %q", got)
		}
		for name, handler := range map[string]func(io.Writer) slog.Handler{
			"text": func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, nil) },
			"JSON": func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, nil) },
		} {
			for what, value := range map[string]any{"lock": lock, "record": record} {
				var said bytes.Buffer
				slog.New(handler(&said)).Info("", "it", value)
				for _, part := range []string{"job", token} {
					if !strings.Contains(said.String(), part) {
						t.Errorf("a %s as %s, without %q: %s", what, name, part, &said)
					}
				}
				for _, part := range []string{"secret", "c2VjcmV0", "115 101", "0xc"} { // the data as text, as base64 and as bytes, and the beginning of a memory address
					if strings.Contains(said.String(), part) {
						t.Errorf("a %s as %s, with %q: %s", what, name, part, &said)
					}
				}
			}
		}
	})
}
