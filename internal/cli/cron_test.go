//go:build unix

package cli_test

import (
	"fmt"
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

// Three hosts have the same crontab line and separate home directories. On the first night,
// leasehold on host "a" is killed while CMD runs. On the next night, exactly one host must run CMD.
func TestCronJobRunsOnOneHostAfterDeathOfHolderOnAnyBackend(t *testing.T) {
	t.Parallel()
	lab.ParallelVariants(t, map[string][]string{
		"a lock": {"nightly"}, "two keys": {"-k", "nightly", "-k", "disk"},
		"one of two keys": {"--any", "-k", "nightly"}, "a permit": {"-p", "1", "nightly"},
	}, func(t *testing.T, flags []string) {
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

		// Give each host a new home directory: the second night must not depend on files of
		// the first night.
		var hosts []*process
		for _, host := range []string{"a", "b", "c"} {
			hosts = append(hosts, line(host, "2", `echo $LEASEHOLD_OWNER >>ran; until test -e done; do sleep 0.01; done`))
		}
		ended := make(chan int)
		for _, p := range hosts {
			go func() { ended <- exitCode(p.cmd.Wait()) }()
		}
		for i := range hosts {
			if i == 2 { // leasehold has ended on two hosts; CMD on the third host runs until this file exists
				lab.OK(t, os.WriteFile(filepath.Join(dir, "done"), nil, 0o600))
			}
			lab.Want(t, "exit code", <-ended, 0)
		}
		ran := string(lab.Must(os.ReadFile(filepath.Join(dir, "ran")))(t))
		lab.Want(t, "hosts on which CMD ran: "+ran, strings.Count(ran, "\n"), 1)
		lab.WantNoFile(t, "file of a second CMD beside the first", filepath.Join(dir, "ran-beside"))
		waited := 0
		for _, p := range hosts {
			waited += strings.Count(p.stderr.String(), ", who looks dead")
		}
		lab.Want(t, "a process said why it waited: "+hosts[0].stderr.String(), waited > 0, true)
	})
}

// The lease is 3 s. With -w 2s, leasehold run waits at most 2 s for a holder that appears live. If
// the holder appears dead, leasehold run waits longer: it observes the holder for the whole 3 s,
// and then takes over the lock.
func TestWaitFlagDoesNotLimitWaitForDeadHolderOnAnyBackend(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	const lease = 3 * time.Second
	start(t, dir, env, "acquire", "k", "-l", lease.String(), "-f", "grant").ends(0)
	eventually(t, "the lock is taken over", func() bool {
		began := time.Now()
		switch code := start(t, dir, env, "run", "-w", "2s", "k", "--", "true").wait(); code {
		case 0:
			lab.WantTook(t, "taken over after", began, lease, 2*patience)
			return true
		case 75: // exit code 75 means that the holder did not appear dead yet
			return false
		default:
			t.Fatalf("exit code %d", code)
			return false
		}
	})
}

// cron mails all output of a crontab line, so the line must print nothing if the job succeeds.
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
		t.Fatalf("unexpected crontab: %q, %q", settings, lines)
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
	mails("the job is done", "^$", 0, "echo ran; false")
	succeeds(t, env, "forget", "nightly-report", "--done", "--yes")
	mails("the job fails", "^no disk\n$", 3, "echo no disk; exit 3")
	mails("empty table name", ".", 125, "true", "LEASEHOLD_TABLE=")
	mails("no such table", ".", 125, "true", "LEASEHOLD_TABLE=other")
	mails("another host runs the job after a failure", "^$", 0, "true")
}

// crontabLines returns the commands of the crontab lines in docs/cron.md that have the given
// schedule. The commands are as cron passes them to the shell: with % instead of \% (crontab(5)).
func crontabLines(t *testing.T, when string) (lines []string) {
	t.Helper()
	for _, f := range fences(documents(t, "docs/cron.md")) {
		if f.language != "crontab" {
			continue
		}
		for line := range strings.Lines(f.text) {
			if at := crontabTime.FindString(line); strings.TrimSpace(at) == when {
				lines = append(lines, strings.ReplaceAll(strings.TrimSpace(strings.TrimPrefix(line, at)), `\%`, "%"))
			}
		}
	}
	return lines
}

// Two runs of one crontab line may overlap. The second run must print nothing, because cron
// mails any output of a line, even if the exit code is 0.
func TestCrontabLineSendsNoMailIfRunsOverlap(t *testing.T) {
	t.Parallel()
	lines := crontabLines(t, "*/5 * * * *")
	if len(lines) < 4 {
		t.Fatalf("only %d lines", len(lines))
	}
	key := regexp.MustCompile(`leasehold run (.*?)(\S+) -- (\S+)$`)
	for _, line := range lines {
		m := key.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("no KEY and CMD in %s", line)
		}
		t.Run(m[2], func(t *testing.T) {
			t.Parallel()
			dir, env := aReader(t)
			if !strings.Contains(line, "--file ") {
				_, env = tableEnv(t)
				env = append(env, "PATH="+dir+":"+os.Getenv("PATH"), "HOME="+dir)
			}
			write := func(program string) {
				t.Helper()
				lab.OK(t, os.WriteFile(filepath.Join(dir, m[3]), []byte("#!/bin/sh\n"+program+"\n"), 0o700))
			}
			holds := strings.Replace(line, "-p 3", "-p 1", 1) // with one permit instead of three, one holder is enough to make the second run skip CMD
			skips := strings.Replace(holds, "-w 4m", "-w 1s", 1)
			write("echo $$ >pid; exec sleep 300")
			held := startProgram(t, dir, env, "sh", "-c", "exec "+holds)
			fileNumber(t, filepath.Join(dir, "pid"))
			write("echo ran beside the other")
			for flag, code := range map[string]int{"-E 0": 0, "-E 75": 75} {
				skipped := startProgram(t, dir, env, "sh", "-c", strings.Replace(skips, "-E 0", flag, 1))
				skipped.ends(code)
				lab.Want(t, "mail of a skipped turn with "+flag, skipped.stdout.String()+skipped.stderr.String(), "")
			}
			lab.Want(t, "mail of the turn that runs", held.stdout.String()+held.stderr.String(), "")
		})
	}
}

// This crontab line runs at minute 30 of each hour of local time. On the night when the clocks go
// back, half past two comes twice. The job must run at only one of these two times.
func TestCrontabJobSkipsRepeatedHourAfterClockChange(t *testing.T) {
	t.Parallel()
	lines := crontabLines(t, "30 * * * *")
	if len(lines) != 1 || !strings.HasSuffix(lines[0], " -- hourly.sh") {
		t.Fatalf("lines %q", lines)
	}
	dir, env := tableEnv(t)
	date := "#!/bin/sh\nPATH=/usr/bin:/bin\ndate -d \"@$AT\" \"$@\" 2>/dev/null || date -r \"$AT\" \"$@\"\n"
	for name, program := range map[string]string{"date": date, "hourly.sh": "#!/bin/sh\necho $AT >>ran\n"} {
		lab.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(program), 0o700))
	}
	env = append(env, "PATH="+dir+":"+os.Getenv("PATH"), "TZ=CET-1CEST,M3.5.0,M10.5.0/3")
	first := time.Date(2026, time.October, 24, 23, 30, 0, 0, time.UTC) // 01:30 in local summer time
	var want strings.Builder
	for hour := range 4 {
		at := first.Add(time.Duration(hour) * time.Hour).Unix()
		if hour != 2 { // two hours after the first run it is 02:30 for the second time: this run must be skipped
			fmt.Fprintln(&want, at)
		}
		p := startProgram(t, dir, append(env, fmt.Sprintf("AT=%d", at)), "sh", "-c", lines[0])
		p.ends(0)
		lab.Want(t, "mail", p.stdout.String()+p.stderr.String(), "")
	}
	ran := string(lab.Must(os.ReadFile(filepath.Join(dir, "ran")))(t))
	lab.Want(t, "times at which CMD ran", ran, want.String())
}
