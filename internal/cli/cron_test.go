//go:build unix

package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Three hosts have the same line in their crontabs. Each has a home directory of its own.
// In the first night, one of them is killed while it works.
func TestCronJobRunsOnOneHostNightAfterCrashOnAnyTable(t *testing.T) {
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

			var hosts []*process // what these hosts observed earlier does not help, because a has renewed since
			for _, host := range []string{"a", "b", "c"} {
				hosts = append(hosts, line(host, "2", `echo $LEASEHOLD_OWNER >>ran; until test -e done; do sleep 0.01; done`))
			}
			ended := make(chan int)
			for _, p := range hosts {
				go func() { ended <- exitCode(p.cmd.Wait()) }()
			}
			for range 2 {
				if code := <-ended; code != 0 {
					t.Errorf("exit code %d", code)
				}
			}
			if err := os.WriteFile(filepath.Join(dir, "done"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if code := <-ended; code != 0 {
				t.Errorf("exit code %d", code)
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

// The test waits for less than a lease each night. Such a waiter never sees a dead holder's
// lease expire during its wait.
func TestWaitShorterThanLeaseTakesOverDeadHolderOnAnyTable(t *testing.T) {
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
	page, err := os.ReadFile("../../docs/cron.md")
	if err != nil {
		t.Fatal(err)
	}
	_, crontab, _ := strings.Cut(string(page), "```crontab\n")
	crontab, _, _ = strings.Cut(crontab, "```")
	var set []string
	var line string
	for _, l := range strings.Split(strings.TrimSpace(crontab), "\n") {
		if strings.HasPrefix(l, "17 2 * * * ") {
			line = strings.TrimPrefix(l, "17 2 * * * ")
		} else if !strings.HasPrefix(l, "PATH=") { // PATH is not set, because in this test the command has another path
			set = append(set, l)
		}
	}
	if len(set) == 0 || !strings.Contains(line, " -- report.sh") {
		t.Fatalf("no line of a crontab: %q", crontab)
	}
	_, env := served(t)
	env = append(env, set...)
	dir := t.TempDir()
	mail := func(report string, more ...string) (string, int) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "report.sh"), []byte("#!/bin/sh\n"+report+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("/bin/sh", "-c", line)
		cmd.Dir, cmd.Env = dir, slices.Concat(env, []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH") + ":" + dir}, more)
		out, err := cmd.CombinedOutput()
		return string(out), exitCode(err)
	}
	if out, code := mail("true"); out != "" || code != 0 {
		t.Errorf("the job runs: %q, exit code %d", out, code)
	}
	if out, code := mail("echo ran; false"); out != "" || code != 0 {
		t.Errorf("it is done: %q, exit code %d", out, code)
	}
	if _, errs, code := said(t, env, "forget", "nightly-report", "--done", "--yes"); code != 0 {
		t.Fatal(errs)
	}
	if out, code := mail("echo no disk; exit 3"); out != "no disk\n" || code != 3 {
		t.Errorf("the job fails: %q, exit code %d", out, code)
	}
	for name, more := range map[string]string{"a lost table": "LEASEHOLD_TABLE=", "no such table": "LEASEHOLD_TABLE=other"} {
		if out, code := mail("true", more); out == "" || code != 125 {
			t.Errorf("%s: %q, exit code %d", name, out, code)
		}
	}
	if out, code := mail("true"); out != "" || code != 0 {
		t.Errorf("another host runs it after one that failed: %q, exit code %d", out, code)
	}
}

func TestQuietSuppressesMessageAboutLocalStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, dir, bare(dir), "run", "-q", "k", "--", "true")
	p.ends(0)
	if p.stderr.String() != "" {
		t.Errorf("it says %s", &p.stderr)
	}
	loud := start(t, dir, bare(dir), "run", "k", "--", "true")
	loud.ends(0)
	loud.said("no table: using ")
}

func TestHeldKeyExitsWith75OrChosenCodeOnAnyTable(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	start(t, dir, env, "run", "k", "--", "timeout", "0.1", "sleep", "5").ends(124)
	start(t, dir, env, "acquire", "k").ends(0)
	start(t, dir, env, "run", "-n", "k", "--", "true").ends(75)
	start(t, dir, env, "run", "-w", "1", "k", "--", "true").ends(75)
	start(t, dir, env, "run", "-n", "-E", "9", "k", "--", "true").ends(9)
	p := start(t, dir, env, "run", "-n", "-E", "124", "--json", "k", "--", "true")
	p.ends(124)
	p.said(`{"error":"held"`)
}

func TestTryInsideRunReportsOuterKeyAsHeldOnAnyTable(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	for inner, want := range map[string]int{
		"leasehold run -n k -- true":               75,
		"leasehold run -n -E 0 k -- true":          0,
		"leasehold run -w 0 k -- true":             75,
		"leasehold run -n -k j -k k -- true":       75,
		"leasehold run -n --any -k k -- true":      75,
		"leasehold run -n --any -k j -k k -- true": 0, // exit code 0, because the other key is free
		"leasehold acquire -n k":                   1,
		"leasehold run k -- true":                  125,
		"leasehold run -w 1s k -- true":            125,
	} {
		p := start(t, dir, env, "run", "k", "--", "sh", "-c", inner+" || exit $?")
		p.ends(want)
		got := p.stderr.String()
		waits, free := strings.Contains(got, "would never end"), strings.Contains(inner, "-k j -k k") && want == 0
		if waits != (want == 125) || strings.Contains(got, "k is held by the leasehold run that started this command") == free {
			t.Errorf("%s: %s", inner, got)
		}
	}
	p := start(t, dir, env, "run", "k", "--", "leasehold", "run", "-q", "-n", "k", "--", "true")
	p.ends(75)
	if p.stderr.String() != "" {
		t.Errorf("-q says %s", &p.stderr)
	}
	p = start(t, dir, env, "run", "k", "--", "leasehold", "--json", "run", "-n", "k", "--", "true")
	p.ends(75)
	p.said(`{"error":"held"`)
}

// A process that runs under a permit must not wait for another permit of the same key. But
// it is allowed to try to acquire one without waiting.
func TestTryWithPermitMayAcquireSecondPermitOnAnyTable(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	start(t, dir, env, "run", "-p", "2", "gpu", "--", "leasehold", "run", "-n", "-p", "2", "gpu", "--", "true").ends(0)
	start(t, dir, env, "run", "-p", "2", "gpu", "--", "leasehold", "run", "-n", "-p", "2", "gpu", "--",
		"leasehold", "run", "-n", "-p", "2", "gpu", "--", "true").ends(75)
	start(t, dir, env, "run", "-p", "2", "gpu", "--", "leasehold", "run", "-p", "2", "gpu", "--", "true").ends(125)
}

// The lease is long, so no renewal reports the loss before CMD ends by itself.
func TestLostLockExitsWith123EvenIfCMDSucceedsOnAnyTable(t *testing.T) {
	t.Parallel()
	for name, since := range map[string][]string{
		"done by another": {"run", "--once", "v9", "k", "--", "true"},
		"forgotten":       {"forget", "k", "--yes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, env := tableEnv(t)
			p := start(t, dir, env, "run", "--once", "v9", "-l", "10m", "k", "--", "sh", "-c", `echo $LEASEHOLD_TOKEN >token; until test -e go; do sleep 0.01; done`)
			token := strconv.Itoa(fileNumber(t, filepath.Join(dir, "token")))
			start(t, dir, env, "break", "k", "--yes", "--token", token).ends(0)
			start(t, dir, env, since...).ends(0)
			if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			p.ends(123)
			p.said("leasehold: lost k", "CMD had already ended")
		})
	}
}
