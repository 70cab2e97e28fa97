package cli_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestForgetRemovesFreeKeyAndRefusesHeldKey(t *testing.T) {
	t.Parallel()
	for _, f := range foreigners() {
		t.Run(f.layout.Name(), func(t *testing.T) {
			t.Parallel()
			server := f.holds(t)
			says := func(wantCode int, want string, args ...string) {
				t.Helper()
				if out, errs, code := said(t, server.env, args...); code != wantCode || !strings.Contains(out+errs, want) {
					t.Errorf("%q: exit code %d, %s%s", args, code, out, errs)
				}
			}
			says(1, " is held by "+f.name, "forget", "job", "--yes")
			says(0, "", "get", "job", "--held")
			damaged := maps.Clone(f.item)
			delete(damaged, f.damaged)
			putItem(t, server.db, damaged)
			says(1, "leasehold break", "forget", "job", "--yes")
			says(2, "is damaged", "break", "job")
			says(0, "", "run", "mine", "--", "true")
			if f.layout.Capabilities().KeepOnRelease {
				says(0, "forgot mine", "forget", "mine", "--yes")
			} else {
				says(1, "no such record", "forget", "mine", "--yes")
			}
			says(1, "no such record", "get", "mine")
			says(0, "", "run", "mine", "--", "true")
			says(2, "is damaged", "break", "job")
		})
	}
}

func TestForgetRejectsRecordOfSharedLease(t *testing.T) {
	t.Parallel()
	db, env := served(t)
	locks, lock := sharedLock(t, db)
	row := "leasehold/session/" + lock.Record().Session
	for range 2 { // first round: the session is live; second round: it has ended
		refuses(t, env, 1, "is the row of a shared lease rather than a key: nothing was removed", "forget", row, "--yes")
		refuses(t, env, 1, "is the row of a shared lease", "break", row) // if forget had removed the row, break would report a missing record instead
		lab.OK(t, locks.Close(t.Context()))
	}
}
