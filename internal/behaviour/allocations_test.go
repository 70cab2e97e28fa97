//go:build !race

// The race detector allocates memory itself, so this file is not built when the detector is
// enabled.

package behaviour_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

// allocating contains the operations whose memory allocations are recorded, in the order of
// testdata/allocations.txt. Each count includes the allocations of the SDK and of the engine.
var allocating = []struct {
	name   string
	shared bool // if true, the client has Config.SharedLease
	what   func(ctx context.Context, c *leasehold.Client) error
}{
	{"acquire and release", false, acquireAndRelease},
	{"acquire and release under a shared lease", true, acquireAndRelease},
	{"acquire, renew and release", false, func(ctx context.Context, c *leasehold.Client) error {
		return c.Do(ctx, "job", func(ctx context.Context, l *leasehold.Lock) error { return l.Renew(ctx) })
	}},
	{"acquire, commit and release", false, commitOnce},
	{"acquire, commit and release under a shared lease", true, commitOnce},
	{"acquire three keys at once and release them", false, func(ctx context.Context, c *leasehold.Client) error {
		g, err := c.AcquireAll(ctx, leasehold.Keys("a", "b", "c"))
		if err != nil {
			return err
		}
		return g.Release(ctx)
	}},
	{"acquire one of three and release it", false, func(ctx context.Context, c *leasehold.Client) error {
		l, err := c.AcquireAny(ctx, leasehold.Keys("a", "b", "c"))
		if err != nil {
			return err
		}
		return l.Release(ctx)
	}},
	{"get a record", false, func(ctx context.Context, c *leasehold.Client) error {
		_, err := c.Get(ctx, "kept")
		return err
	}},
}

func acquireAndRelease(ctx context.Context, c *leasehold.Client) error {
	return c.Do(ctx, "job", func(context.Context, *leasehold.Lock) error { return nil })
}

func commitOnce(ctx context.Context, c *leasehold.Client) error {
	return c.Do(ctx, "job", func(ctx context.Context, l *leasehold.Lock) error { return l.Commit(ctx, nil) })
}

// The file testdata/allocations.txt contains the number of allocations of each operation. With
// -rewrite, this test writes the file anew. Without -rewrite, the test accepts up to a tenth more
// allocations than the file says, because other goroutines allocate memory, too.
func TestAllocationsOfEachOperationStayWithinRecordedBounds(t *testing.T) {
	const file = "testdata/allocations.txt"
	var now strings.Builder
	measured := map[string]int{}
	for _, op := range allocating {
		measured[op.name] = allocations(t, op.shared, op.what)
		fmt.Fprintf(&now, "%6d %s\n", measured[op.name], op.name)
	}
	if *rewrite {
		lab.OK(t, os.WriteFile(file, []byte(now.String()), 0o600))
		return
	}
	recorded := lab.Must(os.ReadFile(file))(t)
	for line := range strings.Lines(string(recorded)) {
		var most int
		lab.WantErr(t, "recorded number", lab.ErrorOf(fmt.Sscan(line, &most)), nil)
		name := strings.TrimSpace(line[6:])
		lab.WantRange(t, "allocations, at most a tenth above the record", measured[name], 0, most+most/10)
	}
}

func allocations(t *testing.T, shared bool, what func(context.Context, *leasehold.Client) error) int {
	t.Helper()
	engine := localdynamo.New()
	defer func() { _ = engine.Close() }()
	db := engine.Client()
	lab.OK(t, table.Create(t.Context(), db, table.Spec{Name: "locks"}))
	c := lab.Must(leasehold.New(db, leasehold.Config{Table: "locks", SharedLease: shared, Logger: slog.New(slog.DiscardHandler)}))(t)
	defer func() { _ = c.Close(context.WithoutCancel(t.Context())) }()
	lab.OK(t, c.Do(t.Context(), "kept", func(context.Context, *leasehold.Lock) error { return nil }))
	return int(testing.AllocsPerRun(100, func() {
		lab.OK(t, what(t.Context(), c))
	}))
}
