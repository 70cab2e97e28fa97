//go:build linux

package processes

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// commandVariable is the name of an environment variable. If the variable is set when this program
// starts, the program acts as the CMD of "leasehold run KEY -- CMD". The variable then contains an
// errand in JSON.
const commandVariable = "LEASEHOLD_PROCESSES_COMMAND"

// errand tells a CMD (a program that leasehold run starts) what to do.
type errand struct {
	Who     string // name of the leasehold run process in the journal
	Journal string
	Place   place
	Lease   time.Duration
	Seed    uint64
	Hold    time.Duration // how long CMD lasts; 0 for a random time
}

// BeCommand runs the errand in commandVariable, and exits. If the variable is not set,
// BeCommand returns.
func BeCommand() {
	text := os.Getenv(commandVariable)
	if text == "" {
		return
	}
	var e errand
	err := json.Unmarshal([]byte(text), &e)
	if err == nil {
		err = e.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run does the work of CMD, which cannot check the lock. Again and again, it records that it
// believes that it holds the lock. It also writes to a counter that rejects old tokens. A signal
// kills CMD immediately, because CMD handles none.
func (e errand) run() error {
	key := os.Getenv("LEASEHOLD_KEY")
	token, err := strconv.ParseInt(os.Getenv("LEASEHOLD_TOKEN"), 10, 64)
	if err != nil {
		return fmt.Errorf("LEASEHOLD_TOKEN: %w", err)
	}
	j, err := openJournal(e.Journal, e.Who)
	if err != nil {
		return err
	}
	defer j.close()
	tables, err := e.Place.open()
	if err != nil {
		return err
	}
	defer tables.close()
	chance := rand.New(rand.NewPCG(e.Seed, 2))
	event := Event{Key: key, Grant: 1, Token: token}
	say := func(k Kind) {
		said := event
		said.Kind, said.Lease = k, e.Lease
		j.write(said)
	}
	event.Text = strconv.Itoa(os.Getpid())
	say(Granted)
	enough := now() + time.Duration(chance.Int64N(int64(400*time.Millisecond)))
	if chance.IntN(3) == 0 {
		enough += e.Lease
	}
	if e.Hold != 0 {
		enough = now() + e.Hold
	}
	for n := 1; now() < enough; n++ {
		say(Believes)
		if chance.IntN(3) == 0 {
			write := event
			write.Kind, write.Plain, write.Write = Sent, true, fmt.Sprintf("%s/%d", e.Who, n)
			j.write(write)
			ctx, cancel := context.WithTimeout(context.Background(), e.Lease)
			write.Kind = answer(tables.add(ctx, key, e.Who, token, false), false)
			cancel()
			j.write(write)
		}
		pass(context.Background(), time.Duration(1+chance.Int64N(int64(10*time.Millisecond))))
	}
	say(Over)
	return nil
}

// buildCommand builds the command leasehold and returns its path.
func buildCommand(t testing.TB) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "leasehold")
	if out, err := exec.Command("go", "build", "-C", "../../..", "-o", binary, "./cmd/leasehold").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return binary
}

// commandRun describes how to start a leasehold run process.
type commandRun struct {
	binary string
	at     place
	key    string
	lease  time.Duration
	shell  string        // shell script that starts CMD as "$0"; empty if leasehold run starts CMD directly
	hold   time.Duration // how long CMD lasts; 0 for a random time
}

// aChild is a shell script that runs CMD as a background process of the shell.
const aChild = `"$0" & wait`

// command adds a slot to the crew. The crew runs "leasehold run" in this slot, and starts a new
// process when the process has ended.
func (c *crew) command(r commandRun) {
	home := c.t.TempDir()
	c.add(true, func(who string) *exec.Cmd {
		cmd := again(commandVariable, errand{
			Who: who, Journal: c.path, Place: r.at, Lease: r.lease, Seed: c.chance().Uint64(), Hold: r.hold,
		})
		cmd.Path, cmd.Args = r.binary, []string{"leasehold", "run", r.key, "--lease", r.lease.String(), "--"}
		if r.shell != "" {
			cmd.Args = append(cmd.Args, "sh", "-c", r.shell)
		}
		cmd.Args = append(cmd.Args, mustExecutable())
		cmd.Env = append(cmd.Env, "HOME="+home, "XDG_STATE_HOME="+home)
		if r.at.File != "" {
			cmd.Env = append(cmd.Env, "LEASEHOLD_FILE="+r.at.File)
		} else {
			cmd.Env = append(cmd.Env, "LEASEHOLD_TABLE="+lockTable, "AWS_ENDPOINT_URL_DYNAMODB="+r.at.Endpoint, "AWS_REGION=local",
				"AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local")
		}
		c.journal.write(Event{Who: who, Kind: Asked, Key: r.key, Lease: r.lease})
		return cmd
	})
}

// mustExecutable returns the path of this program's binary.
func mustExecutable() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}
