//go:build linux

package peers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/proof/interop/engines"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The function "runs" calls fn once for every peer (another lock library), and once for leasehold.
// Each library has its own table.
func runs(t *testing.T, fn func(t *testing.T, p Peer, start func() *Driver)) {
	server := engines.Run(t, engines.Dynoxide)
	for i, p := range append(All(), Ours("native")) {
		t.Run(p.Name, func(t *testing.T) {
			s := Settings{Table: fmt.Sprintf("locks%d", i), Lease: 30 * time.Second}
			lab.OK(t, p.CreateTable(Patiently(t), server, s))
			if p.Heartbeats {
				s.Heartbeat = 5 * time.Second
			}
			fn(t, p, func() *Driver { return Run(t, p, server.Endpoint, s) })
		})
	}
}

func TestEachLockLibraryRefusesHeldKeyUntilItIsReleased(t *testing.T) {
	runs(t, func(t *testing.T, p Peer, start func() *Driver) {
		one, other := start(), start()
		held := one.Acquire(t, "k")
		other.Refused(t, "k")
		one.Release(t, held)
		held = other.Acquire(t, "k")
		one.Refused(t, "k")
		other.Release(t, held)
	})
}

func TestCallThatWaitsForLockDoesNotBlockCallsForOtherKeys(t *testing.T) {
	runs(t, func(t *testing.T, p Peer, start func() *Driver) {
		one, other := start(), start()
		held := one.Acquire(t, "k")
		waiting := other.Send(Request{Do: "acquire", Key: "k", Wait: time.Minute})
		other.Release(t, other.Acquire(t, "another"))
		select {
		case <-waiting.Done():
			_, err := waiting.Await(t)
			t.Fatalf("the wait has ended (%v) while the key was held", err)
		default:
		}
		one.Release(t, held)
		lab.Must(waiting.Await(t))(t)
	})
}

func TestCallToKilledLibraryProcessReturnsErrEnded(t *testing.T) {
	runs(t, func(t *testing.T, p Peer, start func() *Driver) {
		one, other := start(), start()
		one.Acquire(t, "k")
		waiting := other.Send(Request{Do: "acquire", Key: "k", Wait: time.Minute})
		lab.OK(t, other.Kill())
		for _, c := range []*Call{waiting, other.Send(Request{Do: "acquire", Key: "k"})} {
			lab.WantErr(t, "reply", lab.ErrorOf(c.Await(t)), ErrEnded)
		}
		lab.WantNoFile(t, "process that was stopped", fmt.Sprintf("/proc/%d", other.PID()))
	})
}

func TestResumedLibraryProcessAnswersPendingCall(t *testing.T) {
	runs(t, func(t *testing.T, p Peer, start func() *Driver) {
		d := start()
		lab.OK(t, d.Stop())
		call := d.Send(Request{Do: "acquire", Key: "k"})
		stat := string(lab.Must(os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.PID())))(t))
		// The state, a letter that proc(5) explains, follows the process name, which may contain any character.
		lab.Want(t, "state of the process", stat[strings.LastIndex(stat, ")")+2], 'T')
		lab.OK(t, d.Continue())
		lab.Must(call.Await(t))(t)
	})
}

func TestLockLibrariesRejectUnsupportedOperations(t *testing.T) {
	runs(t, func(t *testing.T, p Peer, start func() *Driver) {
		d := start()
		held := d.Acquire(t, "k")
		for _, c := range []struct {
			can bool
			r   Request
		}{
			{false, Request{Do: "no such thing"}},
			{p.ManualHeartbeat, Request{Do: "heartbeat", Lock: held}},
			{p.Name == DynamoDLM.Name, Request{Do: "acquire", Key: "three", Slots: 3}},
			{p.Name == AWSLabs.Name, Request{Do: "acquire", Key: "new", Update: true}},
		} {
			want := map[bool]error{false: ErrUnsupported}[c.can]
			lab.WantErr(t, c.r.Do, lab.ErrorOf(d.Ask(t, c.r)), want)
		}
	})
}

func TestInstalledLockLibrariesHavePinnedVersions(t *testing.T) {
	cmd := lab.Must(AWSLabs.command(t.Context()))(t)
	classes, lib, _ := strings.Cut(cmd.Args[slices.Index(cmd.Args, "-cp")+1], ":")
	jar := filepath.Join(filepath.Dir(lib), "dynamodb-lock-client-"+AWSLabs.Version+".jar")
	for _, path := range []string{filepath.Join(classes, "Driver.class"), jar} {
		lab.Must(os.Stat(path))(t)
	}
	for _, p := range []Peer{PythonDynamoDBLock, DynamoDLM, DyndbMutex} {
		cmd := lab.Must(p.command(t.Context()))(t)
		const ask = "import sys, importlib.metadata; print(importlib.metadata.version(sys.argv[1]))"
		out, err := exec.Command(cmd.Path, "-c", ask, p.Name).Output()
		if got := strings.TrimSpace(string(out)); err != nil || got != p.Version {
			t.Errorf("%s is installed in version %q (%v), want %s", p.Name, got, err, p.Version)
		}
	}
}

func TestInstallErrorSaysHowToInstallMissingTool(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("LEASEHOLD_ENGINES", t.TempDir())
	lab.WantText(t, "awslabs", AWSLabs.Install(t.Context()), "javac is not on PATH", "apt-get install openjdk-17-jdk-headless")
	lab.WantText(t, "dyndb-mutex", DyndbMutex.Install(t.Context()), "python3 is not on PATH", "apt-get install python3-venv")
}

func TestClientsInOneProcessDoNotShareLocks(t *testing.T) {
	runs(t, func(t *testing.T, _ Peer, start func() *Driver) {
		d := start()
		other := lab.Must(d.Open(Patiently(t)))(t)
		held := d.Acquire(t, "k")
		lab.WantErr(t, "acquire by the other client", lab.ErrorOf(d.Ask(t, Request{Do: "acquire", Key: "k", Client: other})), ErrHeld)
		lab.WantFailed(t, "release by the other client", lab.ErrorOf(d.Ask(t, Request{Do: "release", Lock: held, Client: other})))
		d.Release(t, held)
		held = d.Must(t, Request{Do: "acquire", Key: "k", Client: other}).ID
		d.Refused(t, "k")
		d.Must(t, Request{Do: "release", Lock: held, Client: other})
	})
}
