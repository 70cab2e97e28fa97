package adapters

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/contrib/byname"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/locktest"
)

func TestIntegrationsPageQuotesAdapterSource(t *testing.T) {
	page := lab.Must(os.ReadFile("../../../docs/integrations.md"))(t)
	quotes := regexp.MustCompile("\\[(\\w+\\.go)\\]\\(\\.\\./proof/interop/adapters/\\w+\\.go\\)\\):\\n\\n```go\\n((?s:.*?))```").FindAllStringSubmatch(string(page), -1)
	lab.Want(t, "files that docs/integrations.md quotes", len(quotes), 3)
	for _, quote := range quotes {
		source := lab.Must(os.ReadFile(quote[1]))(t)
		for _, decl := range strings.Split(strings.TrimSpace(quote[2]), "\n\n") {
			lab.WantParts(t, quote[1], source, "\n"+decl+"\n")
		}
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inBubble runs a test in a synctest bubble, where time is virtual.
func inBubble(t *testing.T, test func(t *testing.T, env *locktest.Env)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, locktest.New(t)) })
}

// namesOf returns a byname.Locker with a client of its own, which simulates a new process.
func namesOf(t *testing.T, env *locktest.Env, cfg leasehold.Config, prefix string) *byname.Locker {
	t.Helper()
	return lab.Must(byname.New(env.Client(cfg), prefix))(t)
}
