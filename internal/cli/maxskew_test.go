package cli_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/machine"
)

// servedToTheDead starts a server, and returns the environment of a command that uses the
// server. The key "job" is held by a client that used MaxSkew and died an hour ago.
func servedToTheDead(t *testing.T) (env []string) {
	t.Helper()
	db, env := served(t)
	anHourAgo := machine.DB{Client: db, Edit: func(m *machine.Machine) {
		m.Wall = func() time.Time { return time.Now().Add(-time.Hour) }
	}}
	locks := lab.Must(leasehold.New(anHourAgo, leasehold.Config{Table: "locks", Lease: 10 * time.Minute, MaxSkew: time.Second}))(t)
	lab.Must(locks.Acquire(t.Context(), "job", leasehold.WithoutRenewal()))(t)
	return env
}

func TestFirstReadCanDetectDeadHolderIfMaxSkewIsSet(t *testing.T) {
	t.Parallel()
	type variant struct {
		args, skew string
		code       int
		says       string
	}
	lab.ParallelVariants(t, map[string]variant{
		"run with MaxSkew for CMD": {"run -n job -- printenv LEASEHOLD_MAX_SKEW", "1s", 0, "1s"},
		"run without MaxSkew":      {"run -w 1 job -- true", "0", 75, "job, held by"},
		"run with large MaxSkew":   {"run -w 1 -l 3h job -- true", "2h", 75, "job, held by"},
		"acquire":                  {"acquire -n job -f -", "1s", 0, `"key":"job"`},
		"ls --check":               {"ls --check", "1s", 0, "\tdead"},
		"get --check":              {"get job --check", "1s", 0, "\tdead"},
	}, func(t *testing.T, tc variant) {
		out, errs, code := said(t, append(servedToTheDead(t), "LEASEHOLD_MAX_SKEW="+tc.skew), strings.Fields(tc.args)...)
		if code != tc.code || !strings.Contains(out+errs, tc.says) {
			t.Errorf("exit code %d, %s%s", code, out, errs)
		}
	})
}

func TestCommandsShowSharedLeaseOfLock(t *testing.T) {
	t.Parallel()
	db, env := served(t)
	_, lock := sharedLock(t, db)
	id := lock.Record().Session
	if id == "" {
		t.Fatal("the lock is under no shared lease")
	}
	for _, tc := range []struct{ args, want string }{
		{"get job", "\nlease\t20s\nsession\t" + id + "\n"},
		{"get job --check", "\nlease\t20s\nsession\t" + id + "\n"},
		{"get job --json", `"leaseMs":20000,"session":"` + id + `"`},
		{"ls --json", `"leaseMs":20000,"session":"` + id + `"`},
		{"ls --json --check", `"leaseMs":20000,"session":"` + id + `"`},
		{"break job --json --yes --token " + strconv.FormatInt(lock.Token(), 10), `"leaseMs":20000,"session":"` + id + `"`},
	} {
		lab.WantParts(t, tc.args, succeeds(t, env, strings.Fields(tc.args)...), tc.want)
	}
}
