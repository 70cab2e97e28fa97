//go:build unix

package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/creack/pty"

	"github.com/leasehold-go/leasehold/layout"
)

// screen is a command on its own terminal, with everything it has written there.
type screen struct {
	*process
	tty  *os.File
	done chan struct{}

	mu   sync.Mutex
	text string
}

func onTerminal(t *testing.T, dir string, env []string, args ...string) *screen {
	t.Helper()
	return programOnTerminal(t, dir, env, "leasehold", args...)
}

// programOnTerminal is onTerminal for another program.
func programOnTerminal(t *testing.T, dir string, env []string, program string, args ...string) *screen {
	t.Helper()
	s := &screen{process: processOf(t, dir, env, program, args...), done: make(chan struct{})}
	tty, err := pty.StartWithSize(s.cmd, &pty.Winsize{Rows: 24, Cols: 100})
	if err != nil {
		t.Fatal(err)
	}
	s.tty = tty
	t.Cleanup(func() {
		s.kill()
		_ = tty.Close()
		<-s.done
	})
	go func() {
		defer close(s.done)
		b := make([]byte, 4096)
		for {
			n, err := tty.Read(b)
			s.mu.Lock()
			s.text += string(b[:n])
			s.mu.Unlock()
			if err != nil {
				return // the last of its processes has ended
			}
		}
	}()
	return s
}

func (s *screen) shown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text
}

// shows waits until the pattern is on the screen.
func (s *screen) shows(pattern string) {
	s.t.Helper()
	re := regexp.MustCompile(pattern)
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Logf("the screen: %q", s.shown())
		}
	})
	eventually(s.t, "the screen shows "+pattern, func() bool { return re.MatchString(s.shown()) })
}

func (s *screen) types(keys string) {
	s.t.Helper()
	if _, err := s.tty.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

const ctrlC, ctrlZ = "\x03", "\x1a"

func TestTableOnATerminalTheWaitIsOneLineRewritten(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	holder := start(t, dir, env, "run", "k", "--", "sh", "-c", works)
	fileNumber(t, filepath.Join(dir, "pid2"))
	s := onTerminal(t, dir, env, "run", "k", "--", "echo", "mine")
	s.shows(`^leasehold: waiting for k, held by [^ ]+/[a-z2-7]{4} for \d+s\r\x1b\[Kleasehold: waiting for k, held by [^ ]+ for \d+s`)
	holder.signal(syscall.SIGTERM)
	s.shows(`\r\x1b\[Kleasehold: granted k after \d+s, token \d+\r\nmine\r\n`)
	s.ends(0)
}

func TestTableCtrlCEndsTheWait(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	start(t, dir, env, "acquire", "k", "-f", "grant").ends(0)
	s := onTerminal(t, dir, env, "run", "k", "--", "echo", "mine")
	s.shows(`waiting for k`)
	s.types(ctrlC)
	s.ends(128 + int(syscall.SIGINT))
}

func TestTableCtrlCReachesCMD(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	s := onTerminal(t, dir, env, "run", "k", "--", "sh", "-c", `trap 'echo told; exit 5' INT; echo ready; while :; do sleep 0.01; done`)
	s.shows(`^ready\r\n`)
	s.types(ctrlC)
	s.shows(`told\r\n`)
	s.ends(5)
}

func TestTableCMDCanAskAtTheTerminal(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	s := onTerminal(t, dir, env, "run", "k", "--", "sh", "-c", `printf 'sure? '; read answer; echo "it was $answer"; read answer; echo "and $answer"`)
	s.shows(`^sure\? `)
	s.types("yes\n")
	s.shows(`it was yes\r\n`)
	s.types("again\n")
	s.shows(`and again\r\n`)
	s.ends(0)
}

func TestTableCtrlZStopsTheWholeJob(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	s := programOnTerminal(t, dir, env, "sh", "-c", `set -m
		leasehold run k -- sh -c 'echo $$ >pid; echo $PPID >ppid; read answer; echo "it was $answer"; read answer; echo "and $answer"'
		echo stopped; read go; fg; echo "code $?"`)
	cmd := fileNumber(t, filepath.Join(dir, "pid"))
	leasehold := fileNumber(t, filepath.Join(dir, "ppid"))
	s.types("yes\n")
	s.shows(`it was yes\r\n`)
	s.types(ctrlZ)
	s.shows(`stopped\r\n`)
	if !isStopped(cmd) || !isStopped(leasehold) {
		t.Error("CMD or leasehold runs")
	}
	s.types("go\n")
	s.types("again\n")
	s.shows(`and again\r\ncode 0\r\n`)
	s.ends(0)
}

// As ssh -t HOST leasehold run starts it: KEY would stay held, and CMD stopped, for ever.
func TestTableCtrlZStopsNothingWhereNoShellLooksAfterTheJob(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	s := onTerminal(t, dir, env, "run", "k", "--", "sh", "-c", `read answer; echo "it was $answer"; read answer; echo "and $answer"`)
	s.types("yes\n")
	s.shows(`it was yes\r\n`)
	s.types(ctrlZ)
	s.shows(`\^Z`)
	s.types("again\n")
	s.shows(`and again\r\n`)
	s.ends(0)
}

func isStopped(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(b), ") ")
	return err == nil && strings.HasPrefix(rest, "T")
}

func TestTableOnATerminalAListingIsAligned(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	start(t, dir, env, "acquire", "short", "-l", "1s", "-f", "grant").ends(0)
	start(t, dir, env, "acquire", "a/much/longer/key", "-l", "90s", "-f", "other").ends(0)
	s := onTerminal(t, dir, env, "ls")
	s.ends(0)
	s.shows(`^KEY                OWNER +HELD  LEASE  TOKEN\r\n` +
		`a/much/longer/key  [^ ]+/\d+/[a-z2-7]{4}  \ds    1m30s  \d{16}\r\n` +
		`short              [^ ]+/\d+/[a-z2-7]{4}  \ds    1s     \d{16}\r\n$`)

	s = onTerminal(t, dir, env, "ls", "--check", "short")
	s.ends(0)
	s.shows(`observing 1 holder, at most \ds left`)
	s.shows(`\x1b\[31mdead\x1b\[0m\r\n$`)
	s = onTerminal(t, dir, append(env, "NO_COLOR=1"), "ls", "--check", "short")
	s.ends(0)
	s.shows(` dead\r\n$`)
	s = onTerminal(t, dir, env, "ls", "nothing/")
	s.ends(0)
	s.shows(`^leasehold: no locks are held under nothing/ in `)
	s = onTerminal(t, dir, env, "get", "a/much/longer/key")
	s.ends(0)
	s.shows(`key        a/much/longer/key\r\nstate      held\r\n`)
	start(t, dir, env, "acquire", "deploy", "--data", "deploying v42", "-f", "third").ends(0)
	s = onTerminal(t, dir, env, "ls", "deploy")
	s.ends(0)
	s.shows(`[a-z2-7]{4}: deploying v42  \ds    20s    \d{16}\r\n$`)
	start(t, dir, env, "run", "done", "--", "true").ends(0)
	s = onTerminal(t, dir, env, "get", "done")
	s.ends(0)
	s.shows(`\r\nexpiresAt   \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\r\nformer      [^\r]+, released\r\n$`)
}

func TestTableWhatIsOnATerminalFitsIt(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	key := strings.Repeat("tenant/", 9) + "job.1"
	start(t, dir, append(env, "LEASEHOLD_OWNER="+strings.Repeat("o", 50)), "acquire", key, "-f", "grant").ends(0)
	fits := func(args ...string) string {
		t.Helper()
		s := onTerminal(t, dir, append(env, "NO_COLOR=1"), args...)
		<-s.done
		for line := range strings.Lines(regexp.MustCompile(`[^\r\n]*\r\x1b\[K`).ReplaceAllString(s.shown(), "")) {
			line = strings.TrimRight(line, "\r\n")
			if len([]rune(line)) > 100 && strings.Contains(strings.TrimSpace(line), " ") {
				t.Errorf("%s: %d columns: %s", args[0], len([]rune(line)), line)
			}
		}
		return s.shown()
	}
	if rows := strings.Count(fits("ls"), "\r\n"); rows != 2 {
		t.Errorf("a header and a lock are %d lines", rows)
	}
	if rows := strings.Count(fits("ls", "-a"), "\r\n"); rows != 2 {
		t.Errorf("a header and a lock are %d lines", rows)
	}
	fits("doctor", "--layout", "dynamo-dlm")
	if text := fits("break", "--dead", "--token", "7", "--if-version", "8", key); strings.Count(text, "\r\n") != 2 {
		t.Errorf("not an error of two lines: %q", text)
	}
}

func TestTableCtrlCEndsACheckWithWhatIsKnown(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	start(t, dir, env, "acquire", "later", "-l", "1h", "-f", "grant").ends(0)
	start(t, dir, env, "acquire", "short", "-l", "1s", "-f", "other").ends(0)
	s := onTerminal(t, dir, env, "ls", "--check")
	s.shows(`observing 2 holders for up to 1m0s: at most \d+ requests`)
	s.shows(`KEY    OWNER[^\n]*\r\nshort  [^\n]*dead`)
	s.types(ctrlC)
	s.ends(130)
	s.shows(`later  [^\n]* unknown\r\n`)
}

func TestTableBreakAsks(t *testing.T) {
	t.Parallel()
	for answer, code := range map[string]int{"y\n": 0, "\n": 1, "no\n": 1, ctrlC: 130} {
		t.Run(strconv.Quote(answer), func(t *testing.T) {
			t.Parallel()
			dir, env := tableEnv(t)
			start(t, dir, env, "acquire", "k", "-l", "1s", "-f", "grant").ends(0)
			s := onTerminal(t, dir, env, "break", "k")
			s.shows(`state      held\r\n`)
			s.shows(`The holder has not renewed for one lease \(1s\): it is dead or stuck\.\r\nBreak the grant of k\? \[y/N\] $`)
			s.types(answer)
			s.ends(code)
			want := "held"
			if code == 0 {
				s.shows(`broke the grant of k to [^ ]+ \(token \d+\)\r\n$`)
				want = "released"
				ls := onTerminal(t, dir, env, "ls", "-a")
				ls.ends(0)
				ls.shows(`STATE\r\nk [^\n]* released, broken by [^\n]* at \d{4}-[-0-9]+ [0-9:]+\r\n$`)
			}
			get := start(t, dir, env, "get", "k")
			get.ends(0)
			if !strings.Contains(get.stdout.String(), "state\t"+want+"\n") {
				t.Errorf("the record: %s", &get.stdout)
			}
		})
	}
}

func TestTableTheListIsKeptUpToDate(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	s := programOnTerminal(t, dir, env, "sh", "-c", `set -m; leasehold ls --watch --every 0.1; echo stopped; read go; fg; echo "code $?"`)
	s.shows(`^\x1b\[\?1049h\x1b\[\?25l\x1b\[\?7l\x1b\[H[^\n]* in [^\n]*, every 100ms, [^\n]*\x1b\[K\r\nno locks are held\x1b\[K`)
	start(t, dir, env, "acquire", "k", "-f", "grant").ends(0)
	s.shows(`\x1b\[H[^\n]*\r\nKEY  OWNER[^\n]*\x1b\[K\r\nk    [^\n]*\x1b\[K\x1b\[J`)
	s.types(ctrlZ)
	s.shows(`\x1b\[\?7h\x1b\[\?25h\x1b\[\?1049l[^\x1b]*stopped\r\n$`) // the shell has its terminal back
	s.types("go\n")
	s.shows(`\x1b\[\?1049l[^\x1b]*\x1b\[\?1049h\x1b\[\?25l\x1b\[\?7l`)
	s.types(ctrlC)
	s.shows(`\x1b\[\?7h\x1b\[\?25h\x1b\[\?1049l[^\x1b]*code 130\r\n$`)
	s.ends(0)
}

func TestTableInAPipeAWatchWritesWhatChangesAndWhen(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	start(t, dir, env, "acquire", "a", "-f", "a").ends(0)
	start(t, dir, env, "acquire", "free", "-f", "f").ends(0)
	start(t, dir, env, "release", "-f", "f").ends(0)
	w := start(t, dir, env, "ls", "--watch", "--every", "0.1")
	lines := func() string { return w.stdout.String() }
	const when = `[-0-9]+T[0-9:]+\.\d{3}Z\t`
	shows := func(pattern string) {
		t.Helper()
		re := regexp.MustCompile(pattern)
		eventually(t, "the pipe has "+pattern, func() bool { return re.MatchString(lines()) })
	}
	shows(`^` + when + `a\t[^\n]*\theld\n$`)
	start(t, dir, env, "acquire", "b", "-f", "b").ends(0)
	shows(`\n` + when + `b\t[^\n]*\theld\n$`)
	start(t, dir, env, "release", "-f", "a").ends(0)
	shows(`\n` + when + `a\t[^\n]*\treleased\n$`)
	w.signal(syscall.SIGINT)
	w.ends(130)
	if said := w.stderr.String(); !regexp.MustCompile(`leasehold: watching [^\n]* in [^\n]*, every 100ms.*: what comes and goes in between is not seen\n`).MatchString(said) {
		t.Errorf("stderr: %s", said)
	}
}

func TestOnATerminalARecordWithoutALeaseShowsItsEnd(t *testing.T) {
	t.Parallel()
	for _, f := range foreigners() {
		if f.layout.Capabilities().Expiry != layout.WallClock {
			continue
		}
		t.Run(f.layout.Name(), func(t *testing.T) {
			_, env := f.holds(t)
			s := onTerminal(t, t.TempDir(), env, "ls")
			s.ends(0)
			s.shows(`OWNER +HELD  EXPIRES  +TOKEN\r\njob [^\n]*` + f.name + ` +\d+s ago +\r\n$`)
			s = onTerminal(t, t.TempDir(), env, "break", "job")
			s.shows(`The record has expired \(\d+s ago\): its holder is dead or stuck\.\r\nBreak the grant of job[^\n]*\? \[y/N\] $`)
			s.types("y\n")
			s.ends(0)
			s.shows(`broke the grant of job[^\n]* to ` + f.name + `\r\n$`)
		})
	}
}

func TestTableBreakOfAllDeadHoldersListsThemAndAsksOnce(t *testing.T) {
	t.Parallel()
	dir, env := tableEnv(t)
	for _, key := range []string{"cron/a", "cron/b"} {
		start(t, dir, env, "acquire", key, "-l", "1s", "-f", filepath.Base(key)).ends(0)
	}
	start(t, dir, env, "acquire", "cron/far", "-l", "1h", "-f", "far").ends(0)
	start(t, dir, env, "acquire", "other", "-l", "1s", "-f", "other").ends(0)
	s := onTerminal(t, dir, append(env, "NO_COLOR=1"), "break", "--dead", "cron/", "--for", "3s")
	// A line of progress may be painted and cleared after each of the dead.
	const progress = `(?:leasehold: observing [^\n]*\r\x1b\[K)?`
	s.shows(`KEY +OWNER +HELD +LEASE +TOKEN +HOLDER\r\ncron/a [^\n]* dead\r\n` + progress + `cron/b [^\n]* dead\r\n` + progress + `leasehold: 1 holder is not known to be dead yet: [^\n]*\r\nBreak the grants of 2 dead holders of keys that begin with cron/\? \[y/N\] $`)
	start(t, dir, env, "renew", "-f", "b").ends(0)
	s.types("y\n")
	s.ends(1)
	s.shows(`broke the grant of cron/a to [^ ]+ \(token \d+\)\r\nleasehold: cron/b has changed: now held by `)
	for key, code := range map[string]int{"cron/a": 1, "cron/b": 0, "cron/far": 0, "other": 0} {
		start(t, dir, env, "get", key, "--held").ends(code)
	}
	s = onTerminal(t, dir, env, "break", "--dead", "other")
	s.shows(`Break the grant of 1 dead holder of keys that begin with other\? \[y/N\] $`)
	s.types("\n")
	s.ends(1)
	s.shows(`leasehold: nothing was broken\r\n$`)
	start(t, dir, env, "get", "other", "--held").ends(0)
}

// Whatever happens to a semaphore between the look and the answer: neither its number
// nor any of its permits goes, so nobody counts by another number.
func TestTableWhatWasGrantedSinceTheQuestionIsNotForgotten(t *testing.T) {
	t.Parallel()
	run := func(args ...string) []string { return append([]string{"run", "-n"}, append(args, "--", "true")...) }
	for name, c := range map[string]struct {
		before, meanwhile [][]string
		changed           string
	}{
		"a lock is held":                   {[][]string{run("k")}, [][]string{{"acquire", "k", "-f", "grant"}}, "k"},
		"a lock was held":                  {[][]string{run("k")}, [][]string{run("k")}, "k"},
		"a permit is held":                 {[][]string{run("-p", "2", "k"), run("k/0")}, [][]string{{"acquire", "k/0", "-f", "grant"}}, "k/0"},
		"a permit was held":                {[][]string{run("-p", "2", "k")}, [][]string{run("-p", "2", "k")}, "k/[01]"},
		"a permit is held the first time":  {[][]string{run("-p", "2", "k"), run("k/1"), {"forget", "k/1", "--yes"}}, [][]string{{"acquire", "k/1", "-f", "grant"}}, "k/1"},
		"there is another number":          {[][]string{run("-p", "2", "k")}, [][]string{{"semaphore", "resize", "k", "3"}}, "k"},
		"it was forgotten and used anew":   {[][]string{run("-p", "2", "k")}, [][]string{{"forget", "k", "--yes"}, run("-p", "2", "k")}, "k"},
		"the last of a hundred is granted": {[][]string{run("-p", "100", "k")}, [][]string{{"acquire", "k/99", "-f", "grant"}}, ""},
		"the last of what was a hundred":   {[][]string{run("-p", "100", "k"), {"semaphore", "resize", "k", "1"}, run("k/99")}, [][]string{run("k/99")}, "k/99"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, env := tableEnv(t)
			for _, args := range c.before {
				start(t, dir, env, args...).ends(0)
			}
			s := onTerminal(t, dir, env, "forget", "k")
			s.shows(`k is a (lock|semaphore), and free: \d records?\. [^?]*Forget k, if nothing has changed\? \[y/N\] $`)
			for _, args := range c.meanwhile {
				start(t, dir, env, args...).ends(0)
			}
			before := start(t, dir, env, "ls", "-a")
			before.ends(0)
			s.types("y\n")
			s.ends(1)
			if c.changed == "" {
				s.shows(`leasehold: k/99 is held by [^;]*; it may have 99\s+permits\s+now:\s+to\s+undo\s+that,\s+leasehold\s+semaphore\s+resize\s+k\s+100\r\n$`)
			} else {
				s.shows(`leasehold: record has changed meanwhile: ` + c.changed + `: k was not removed: look\s+again\s+with leasehold get k\r\n$`)
			}
			after := start(t, dir, env, "ls", "-a")
			after.ends(0)
			if before.stdout.String() != after.stdout.String() {
				t.Errorf("before:\n%safter:\n%s", &before.stdout, &after.stdout)
			}
			start(t, dir, env, "get", "k").ends(0)
		})
	}
}

func TestTableForgetAsks(t *testing.T) {
	t.Parallel()
	for answer, code := range map[string]int{"y\n": 0, "\n": 1, ctrlC: 130} {
		t.Run(strconv.Quote(answer), func(t *testing.T) {
			t.Parallel()
			dir, env := tableEnv(t)
			start(t, dir, env, "run", "k", "--data", "x", "--", "true").ends(0)
			s := onTerminal(t, dir, env, "forget", "k")
			s.shows(`k has data or attributes of yours, which are removed as well\r\nk is a lock, and free: 1 record\. Tokens start again`)
			s.types(answer)
			s.ends(code)
			if code == 0 {
				s.shows(`forgot k: 1 record was removed\r\n$`)
			}
			start(t, dir, env, "get", "k").ends(map[bool]int{true: 1, false: 0}[code == 0])
		})
	}
}

func TestTableADamagedRecordIsShownBeforeItIsRemoved(t *testing.T) {
	t.Parallel()
	db, env := served(t)
	put := func(note string) {
		t.Helper()
		if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("locks"), Item: map[string]types.AttributeValue{
			"key": &types.AttributeValueMemberS{Value: "bad"}, "note": &types.AttributeValueMemberS{Value: note},
		}}); err != nil {
			t.Fatal(err)
		}
	}
	put("before")
	const asks = `\r\n  "note": {\r\n    "S": "before"\r\n  }\r\n}\r\nIt does not read as a lock: ownerName is missing\.\r\n[^\n]*\r\nclock\.\r\nRemove the record of bad, if it is still as shown\? \[y/N\] $`
	s := onTerminal(t, t.TempDir(), env, "break", "bad", "--damaged")
	s.shows(asks)
	put("since")
	s.types("y\n")
	s.ends(1)
	s.shows(`has changed meanwhile: bad: nothing was removed`)
	put("before")
	s = onTerminal(t, t.TempDir(), env, "break", "bad", "--damaged")
	s.shows(asks)
	s.types("y\n")
	s.ends(0)
	s.shows(`removed the record of bad\r\n$`)
}

func TestTableALiveLockWithAnAttributeOfAUsersIsCalledThatBeforeItIsRemoved(t *testing.T) {
	t.Parallel()
	db, env := served(t)
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("locks"), Item: map[string]types.AttributeValue{
		"key": text("live"), "kind": text("invoice"), "ownerName": text("a-peer"), "leaseDuration": text("20000"), "recordVersionNumber": text("1"),
	}}); err != nil {
		t.Fatal(err)
	}
	s := onTerminal(t, t.TempDir(), env, "break", "live", "--damaged")
	s.shows(`Without that attribute it is a lock that somebody holds: rename the attribute\s+instead\.`)
	s.types("n\n")
	s.ends(1)
	start(t, t.TempDir(), env, "get", "live", "--raw").ends(0)
}
