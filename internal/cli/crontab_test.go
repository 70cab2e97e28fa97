//go:build unix

package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
)

// crontabLines returns the commands of those crontab lines in docs/cron.md whose schedule
// is when. It returns each command as cron passes it to the shell, with % unescaped
// (crontab(5)).
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
// mails the output of a line whatever its exit code is.
func TestCrontabLineSendsNoMailIfPreviousRunStillRuns(t *testing.T) {
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
			holds := strings.Replace(line, "-p 3", "-p 1", 1) // with one permit instead of three, one holder is enough to make the second run skip its turn
			skips := strings.Replace(holds, "-w 4m", "-w 1s", 1)
			write("echo $$ >pid; exec sleep 300")
			held := startProgram(t, dir, env, "sh", "-c", "exec "+holds)
			fileNumber(t, filepath.Join(dir, "pid"))
			write("echo ran beside the other")
			for flag, code := range map[string]int{"-E 0": 0, "-E 75": 75} {
				skipped := startProgram(t, dir, env, "sh", "-c", strings.Replace(skips, "-E 0", flag, 1))
				skipped.ends(code)
				if mail := skipped.stdout.String() + skipped.stderr.String(); mail != "" {
					t.Errorf("a skipped turn with %s mails %q", flag, mail)
				}
			}
			if mail := held.stdout.String() + held.stderr.String(); mail != "" {
				t.Errorf("the turn that runs mails %q", mail)
			}
		})
	}
}

// This crontab line runs at minute 30 of each hour of local time. In the night when the
// clocks go back, half past two comes twice.
func TestCrontabJobRunsOnceInHourRepeatedByClockChange(t *testing.T) {
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
		if hour != 2 { // the run two hours later is at the second 02:30; this run must be skipped
			fmt.Fprintln(&want, at)
		}
		p := startProgram(t, dir, append(env, fmt.Sprintf("AT=%d", at)), "sh", "-c", lines[0])
		p.ends(0)
		if mail := p.stdout.String() + p.stderr.String(); mail != "" {
			t.Errorf("it mails %q", mail)
		}
	}
	if ran, err := os.ReadFile(filepath.Join(dir, "ran")); err != nil || string(ran) != want.String() {
		t.Errorf("it ran at %q, want %q, %v", ran, want.String(), err)
	}
}
