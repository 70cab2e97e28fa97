package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// Any user of the machine can read the command lines of all processes, so these must not
// contain secrets.
func TestCommandLinesContainNoSecrets(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	const mine = "nobody-else-may-know-0123456789"
	run := start(t, dir, append(env, "AWS_SECRET_ACCESS_KEY="+mine), "run", "k", "--", "sh", "-c", works)
	cmd := fileNumber(t, filepath.Join(dir, "pid"))
	dog := watchdogOf(t, run.cmd.Process.Pid, cmd)

	page := start(t, dir, env, "ui")
	eventually(t, "the page is served", func() bool { return strings.Contains(page.stdout.String(), "#token=") })
	_, token, _ := strings.Cut(strings.TrimSpace(page.stdout.String()), "#token=")

	start(t, dir, bare(dir), "local", "--addr", "127.0.0.1:0", "--", "sh", "-c", `echo "$AWS_SECRET_ACCESS_KEY" >made; exec sleep 300`)
	eventually(t, "a key is made", func() bool {
		b, err := os.ReadFile(filepath.Join(dir, "made"))
		return err == nil && len(b) > 20
	})
	made := lab.Must(os.ReadFile(filepath.Join(dir, "made")))(t)
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(lines) < 4 || len(token) < 32 {
		t.Fatal(lines, len(token), err)
	}
	for _, path := range lines {
		line, _ := os.ReadFile(path) // the process may have ended
		for what, secret := range map[string]string{"AWS's key": mine, "the page's token": token, "the engine's key": strings.TrimSpace(string(made))} {
			if bytes.Contains(line, []byte(secret)) {
				t.Errorf("%s is in %q", what, line)
			}
		}
	}
	if b, err := os.ReadFile("/proc/" + strconv.Itoa(dog) + "/environ"); err != nil || len(b) > 0 {
		t.Errorf("the watchdog has an environment of %d bytes, %v", len(b), err)
	}
}
