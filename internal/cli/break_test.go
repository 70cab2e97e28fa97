package cli_test

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/table"
)

func TestBreakSucceedsWithExplanationIfHolderIsNotNotified(t *testing.T) {
	t.Parallel()
	for _, as := range []string{"text", "json"} {
		t.Run(as, func(t *testing.T) {
			t.Parallel()
			f := newFaulty(t, table.Spec{}, func(op string, w http.ResponseWriter, r *http.Request, next http.Handler) {
				if body := bodyOf(r); op == "UpdateItem" && bytes.Contains(body, []byte("brokenGrants")) && !bytes.Contains(body, []byte("ownerName")) {
					denies(op)(op, w, r, next)
					return
				}
				next.ServeHTTP(w, r)
			})
			locks, err := leasehold.New(f.db, leasehold.Config{Table: "locks", SharedLease: true})
			if err != nil {
				t.Fatal(err)
			}
			defer locks.Close(t.Context())
			lock, err := locks.Acquire(t.Context(), "job")
			if err != nil {
				t.Fatal(err)
			}
			args := []string{"break", "job", "--yes", "--token", strconv.FormatInt(lock.Token(), 10)}
			want, kind := "broke the grant of job to ", "up to twenty minutes"
			if as == "json" {
				args, want, kind = append(args, "--json"), `"key":"job"`, `"error":"untold"`
			}
			out, errs, code := said(t, f.env, args...)
			if code != 0 || !strings.Contains(out, want) || !strings.Contains(errs, kind) || !strings.Contains(errs, "up to twenty minutes") {
				t.Errorf("exit code %d, %s%s", code, out, errs)
			}
			if _, errs, code := said(t, f.env, "get", "job", "--held"); code != 1 {
				t.Errorf("not broken: exit code %d, %s", code, errs)
			}
		})
	}
}
