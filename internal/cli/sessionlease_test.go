package cli_test

import (
	"strings"
	"testing"
)

func TestLockUnderSharedLeaseShowsLeaseOfSession(t *testing.T) {
	t.Parallel()
	db, env := served(t)
	_, lock := sharedLock(t, db)
	id := lock.Record().Session
	if id == "" {
		t.Fatal("under no shared lease")
	}
	for _, tc := range []struct{ args, want string }{
		{"get job", "\nlease\t20s\nsession\t" + id + "\n"},
		{"get job --check", "\nlease\t20s\nsession\t" + id + "\n"},
		{"get job --json", `"leaseMs":20000,"session":"` + id + `"`},
		{"ls --json", `"leaseMs":20000,"session":"` + id + `"`},
		{"ls --json --check", `"leaseMs":20000,"session":"` + id + `"`},
	} {
		if out, errs, code := said(t, env, strings.Fields(tc.args)...); code != 0 || !strings.Contains(out, tc.want) {
			t.Errorf("%s: exit code %d, %s%s, want %q", tc.args, code, out, errs, tc.want)
		}
	}
}
