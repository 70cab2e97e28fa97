//go:build unix

package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Each CMD prints how many CMDs are inside, including itself.
const entersAndLeaves = `echo $$ >in/$$; ls in | wc -l >>counts; sleep 0.05; rm in/$$`

func TestTableSixProcessesShareTwoPermits(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	if err := os.Mkdir(filepath.Join(dir, "in"), 0o700); err != nil {
		t.Fatal(err)
	}
	const processes, rounds = 6, 4
	for range rounds {
		var all []*process
		for range processes {
			all = append(all, start(t, dir, env, "run", "-p", "2", "-q", "gpu", "--", "sh", "-c", entersAndLeaves))
		}
		for _, p := range all {
			p.ends(0)
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "counts"))
	if err != nil {
		t.Fatal(err)
	}
	counts := strings.Fields(string(b))
	if len(counts) != processes*rounds {
		t.Errorf("%d were inside, want %d", len(counts), processes*rounds)
	}
	for _, n := range counts {
		if n != "1" && n != "2" {
			t.Errorf("%s inside at once", n)
		}
	}
}

func TestTableAKilledHoldersPermitIsFreeAfterItsLease(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	const lease = 2 * time.Second
	holds := func(name string) *process {
		return start(t, dir, env, "run", "-p", "2", "-l", lease.String(), "-q", "gpu", "--", "sh", "-c", fmt.Sprintf("echo $$ >%s; exec sleep 300", name))
	}
	victim, other := holds("victim"), holds("other")
	cmd := fileNumber(t, filepath.Join(dir, "victim"))
	fileNumber(t, filepath.Join(dir, "other"))
	victim.signal(syscall.SIGKILL)
	killed := time.Now()
	eventually(t, "CMD is dead", func() bool { return isDead(cmd) })
	waiter := start(t, dir, env, "run", "-p", "2", "-l", lease.String(), "gpu", "--", "echo", "mine")
	waiter.ends(0)
	// The last renewal was about a quarter of a lease ago at most.
	if took := time.Since(killed); took < lease/2 || waiter.stdout.String() != "mine\n" {
		t.Errorf("granted after %v, a lease is %v: %q", took, lease, waiter.stdout.String())
	}
	other.signal(syscall.SIGTERM)
	other.ends(128 + int(syscall.SIGTERM))
}
