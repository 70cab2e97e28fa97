package cli_test

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold/table"
)

func TestBreakSucceedsWithExplanationIfHolderIsNotNotified(t *testing.T) {
	t.Parallel()
	for _, as := range []string{"text", "json"} {
		t.Run(as, func(t *testing.T) {
			t.Parallel()
			f := newFaulty(t, table.Spec{}, when(func(op string, r *http.Request) bool {
				body := bodyOf(r)
				return op == "UpdateItem" && bytes.Contains(body, []byte("brokenGrants")) && !bytes.Contains(body, []byte("ownerName"))
			}, denies("UpdateItem")))
			_, lock := sharedLock(t, f.db)
			args := []string{"break", "job", "--yes", "--token", strconv.FormatInt(lock.Token(), 10)}
			want, kind := "broke the grant of job to ", "up to twenty minutes"
			if as == "json" {
				args, want, kind = append(args, "--json"), `"key":"job"`, `"error":"untold"`
			}
			out, errs, code := said(t, f.env, args...)
			if code != 0 || !strings.Contains(out, want) || !strings.Contains(errs, kind) || !strings.Contains(errs, "up to twenty minutes") {
				t.Errorf("exit code %d, %s%s", code, out, errs)
			}
			refuses(t, f.env, 1, "", "get", "job", "--held")
		})
	}
}
