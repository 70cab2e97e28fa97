//go:build unix

package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// Three hosts have the same crontab line, and separate home directories. In the first
// night, leasehold is killed on one of them while its CMD runs. In the next night, exactly
// one host must run CMD.
func TestCronJobRunsOnOneHostAfterCrashOnAnyTable(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{
		"a lock": {"nightly"}, "two keys": {"-k", "nightly", "-k", "disk"},
		"one of two keys": {"--any", "-k", "nightly"}, "a permit": {"-p", "1", "nightly"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, env := tableEnv(t)
			line := func(host, home, job string) *process {
				args := append([]string{"run", "-n", "-E", "0", "-l", "6s"}, flags...)
				return start(t, dir, append(slices.Clip(env), "LEASEHOLD_OWNER="+host, "XDG_STATE_HOME="+filepath.Join(dir, host+home)), append(args, "--", "sh", "-c", job)...)
			}
			a := line("a", "", works)
			fileNumber(t, filepath.Join(dir, "pid2"))
			for _, host := range []string{"b", "c"} {
				p := line(host, "", "echo >ran-beside")
				p.ends(0)
				p.said("held by a/")
			}
			a.kill()
			died := time.Now()
			eventually(t, "the next night", func() bool { return time.Since(died) > 7*time.Second })

			// Each host has a new home directory. Its observations of the first night would
			// be useless anyway, because host a renewed after them.
			var hosts []*process
			for _, host := range []string{"a", "b", "c"} {
				hosts = append(hosts, line(host, "2", `echo $LEASEHOLD_OWNER >>ran; until test -e done; do sleep 0.01; done`))
			}
			ended := make(chan int)
			for _, p := range hosts {
				go func() { ended <- exitCode(p.cmd.Wait()) }()
			}
			for i := range hosts {
				if i == 2 { // two hosts have given up; CMD on the third one runs until this file exists
					lab.OK(t, os.WriteFile(filepath.Join(dir, "done"), nil, 0o600))
				}
				if code := <-ended; code != 0 {
					t.Errorf("exit code %d", code)
				}
			}
			ran, err := os.ReadFile(filepath.Join(dir, "ran"))
			if err != nil || strings.Count(string(ran), "\n") != 1 {
				t.Errorf("it ran on %q, %v", ran, err)
			}
			if _, err := os.Stat(filepath.Join(dir, "ran-beside")); err == nil {
				t.Error("it ran beside the first")
			}
			waited := 0
			for _, p := range hosts {
				waited += strings.Count(p.stderr.String(), ", who looks dead")
			}
			if waited == 0 {
				t.Errorf("nobody said why it waited: %s", &hosts[0].stderr)
			}
		})
	}
}

// Each run of the command waits for less than the lease, so no single run observes a whole
// lease without a renewal.
func TestRepeatedShortWaitsTakeOverDeadHolderOnAnyTable(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	const lease = 3 * time.Second
	start(t, dir, env, "acquire", "k", "-l", lease.String(), "-f", "grant").ends(0)
	eventually(t, "the lock is taken over", func() bool {
		began := time.Now()
		switch code := start(t, dir, env, "run", "-w", "2s", "k", "--", "true").wait(); code {
		case 0:
			if took := time.Since(began); took < lease {
				t.Errorf("taken over after %v, which is less than its lease", took)
			}
			return true
		case 75: // exit code 75 means that the holder did not appear dead yet
			return false
		default:
			t.Fatalf("exit code %d", code)
			return false
		}
	})
}

// cron mails all output of a crontab line.
func TestCrontabLineSendsMailOnlyOnFailure(t *testing.T) {
	t.Parallel()
	var settings []string
	for line := range strings.Lines(fences(documents(t, "docs/cron.md"))[0].text) {
		if !crontabTime.MatchString(line) && !strings.HasPrefix(line, "PATH=") { // the test sets its own PATH, so it skips the PATH line of the crontab
			settings = append(settings, strings.TrimSpace(line))
		}
	}
	lines := crontabLines(t, "17 2 * * *")
	if len(settings) == 0 || len(lines) != 1 || !strings.Contains(lines[0], " -- report.sh") {
		t.Fatalf("no line of a crontab: %q, %q", settings, lines)
	}
	_, env := served(t)
	env = append(env, settings...)
	dir := t.TempDir()
	mails := func(when, want string, code int, report string, more ...string) {
		t.Helper()
		lab.OK(t, os.WriteFile(filepath.Join(dir, "report.sh"), []byte("#!/bin/sh\n"+report+"\n"), 0o700))
		cmd := exec.Command("/bin/sh", "-c", lines[0])
		cmd.Dir, cmd.Env = dir, slices.Concat(env, []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH") + ":" + dir}, more)
		out, err := cmd.CombinedOutput()
		if got := exitCode(err); !regexp.MustCompile(want).Match(out) || got != code {
			t.Errorf("%s: %q, exit code %d, want %s and %d", when, out, got, want, code)
		}
	}
	mails("the job runs", "^$", 0, "true")
	mails("it is done", "^$", 0, "echo ran; false")
	succeeds(t, env, "forget", "nightly-report", "--done", "--yes")
	mails("the job fails", "^no disk\n$", 3, "echo no disk; exit 3")
	mails("a lost table", ".", 125, "true", "LEASEHOLD_TABLE=")
	mails("no such table", ".", 125, "true", "LEASEHOLD_TABLE=other")
	mails("another host runs it after one that failed", "^$", 0, "true")
}
