package adapters

import (
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/contrib/byname"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/locktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inBubble runs a test in a synctest bubble, where time is virtual.
func inBubble(t *testing.T, test func(t *testing.T, env *locktest.Env)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, locktest.New(t)) })
}

// namesOf simulates a new process: it returns a Locker that uses a new client.
func namesOf(t *testing.T, env *locktest.Env, cfg leasehold.Config, prefix string) *byname.Locker {
	t.Helper()
	return lab.Must(byname.New(env.Client(cfg), prefix))(t)
}
