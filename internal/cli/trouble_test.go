package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

// said runs leasehold, waits until leasehold has ended, and returns the output and the exit code.
func said(t *testing.T, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return saidBy(t, "leasehold", env, args...)
}

// saidBy runs the given program, waits until the program has ended, and returns the output
// and the exit code.
func saidBy(t *testing.T, program string, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, err strings.Builder
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = t.TempDir(), env, &out, &err
	code = exitCode(cmd.Run())
	return out.String(), err.String(), code
}

// succeeds runs the command, which must succeed, and returns its standard output.
func succeeds(t *testing.T, env []string, args ...string) (stdout string) {
	t.Helper()
	stdout, stderr, code := said(t, env, args...)
	if code != 0 {
		t.Fatalf("%q: exit code %d, want 0\nstdout: %s\nstderr: %s", args, code, stdout, stderr)
	}
	return stdout
}

// refuses runs the command. It fails the test unless the command exits with the given code and
// writes the text "want" to standard error. It returns what the command has written to standard
// error.
func refuses(t *testing.T, env []string, code int, want string, args ...string) (stderr string) {
	t.Helper()
	stdout, stderr, got := said(t, env, args...)
	if got != code || !strings.Contains(stderr, want) {
		t.Errorf("%q: exit code %d, want %d and %q\nstdout: %s\nstderr: %s", args, got, code, want, stdout, stderr)
	}
	return stderr
}

func TestRecordsOfAnotherLayoutCauseOnlyOneErrorMessage(t *testing.T) {
	t.Parallel()
	env := newFaulty(t, table.Spec{Layout: layout.DyndbMutex{}}, healthy).env
	for _, key := range []string{"a", "z"} {
		succeeds(t, env, "acquire", key, "--layout", "dyndb-mutex")
	}
	want := "leasehold: an item is not a lock of this layout: key is missing: the table's key does not fit the layout: run leasehold table check\n"
	rewrite := []string{"table", "rewrite", "--layout", "awslabs"}
	for _, args := range [][]string{{"ls"}, {"ls", "--check"}, {"ui"}, rewrite, append(slices.Clip(rewrite), "--yes")} {
		stdout, stderr, code := said(t, env, args...)
		lab.Want(t, fmt.Sprint(args), [3]any{code, stdout, stderr}, [3]any{2, "", want})
	}
}

// unanswered is a fault under which the server receives a request and never answers it.
func unanswered(_ string, _ http.ResponseWriter, r *http.Request, _ http.Handler) {
	_, _ = io.Copy(io.Discard, r.Body) // before the body has been read, net/http does not notice that the client closes the connection
	<-r.Context().Done()
}

// The server never answers, so leasehold run stops waiting after the time given by -w. It must not
// treat this like a held key. Otherwise -E 0 would make it exit with 0, as if another host had run
// the cron job.
func TestRunDoesNotMistakeTimeoutForHeldKey(t *testing.T) {
	t.Parallel()
	f, began := newFaulty(t, table.Spec{}, unanswered), time.Now()
	f.env = append(f.env, `LEASEHOLD_HELD=[{"key":"job","table":"other"}]`) // so that run first reads the record, to see whether an outer run holds it
	for _, args := range [][]string{{}, {"-p", "2"}, {"-k", "other"}} {
		args = append([]string{"run", "-w", "500ms", "-E", "0", "--json", "job"}, args...)
		stderr := refuses(t, f.env, 125, "no answer in time: check the network", append(args, "--", "true")...)
		lab.WantParts(t, "stderr", stderr, `"error":"aws"`)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("three waits of 500ms took %v", took)
	}
}

func TestCommandFailsIfServerNeverAnswers(t *testing.T) {
	t.Parallel()
	stops := faultIf(func(op string, _ *http.Request) bool { return op != "DescribeTable" }, unanswered)
	type variant struct {
		command string
		fault   fault
	}
	lab.ParallelVariants(t, map[string]variant{
		"forget": {"forget job --yes", unanswered}, "break": {"break job", unanswered}, "table check": {"table check", unanswered},
		"table create": {"table create", unanswered}, "table create, DescribeTable answered": {"table create", stops},
	}, func(t *testing.T, c variant) {
		began := time.Now()
		stderr := refuses(t, newFaulty(t, table.Spec{}, c.fault).env, 2, "no answer in time: check the network", strings.Fields(c.command)...)
		lab.WantMatch(t, "stderr", stderr, "^leasehold: no answer from DynamoDB for [3-9]s: still trying: "+
			"no reply from http://127[^ ]*: check the network, the region and the endpoint\n")
		lab.WantTook(t, "the command ended after", began, 0, 20*time.Second)
	})
}

// Standard output is /dev/full, so the command cannot write the grant that it has acquired. The
// server hangs after the grant, so the command cannot release the key either.
func TestAcquireReportsFailedReleaseIfItCannotPrintGrant(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	var granted atomic.Bool
	f := newFaulty(t, table.Spec{}, func(op string, w http.ResponseWriter, r *http.Request, next http.Handler) {
		if granted.Load() {
			unanswered(op, w, r, next)
			return
		}
		next.ServeHTTP(w, r)
		granted.Store(op == "UpdateItem")
	})
	var stderr strings.Builder
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "leasehold", "acquire", "-q", "k")
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = t.TempDir(), f.env, full, &stderr
	lab.Want(t, "exit code", exitCode(cmd.Run()), 2)
	lab.WantParts(t, "stderr", stderr.String(), "k could not be released either, and will be free when the lease expires: ")
}

func TestAccessDeniedErrorContainsIAMAction(t *testing.T) {
	t.Parallel()
	_, env := served(t, "UpdateItem", "Scan", "BatchGetItem", "TransactWriteItems")
	stdout, stderr, code := said(t, env, "table", "check")
	if want := "fatal\trights\tdenied: dynamodb:BatchGetItem (several keys, permits (run -p), ls --check in few requests), " +
		"dynamodb:UpdateItem (run, elect, acquire, renew, release, break), dynamodb:ConditionCheckItem (transactions: several keys, and writes of Commit)" +
		"\tallow that in the caller's IAM policy, as leasehold table policy use does\n"; code != 1 || !strings.HasSuffix(stdout, want) || !strings.Contains(stdout, "ok\ttable\tlocks in http") {
		t.Errorf("check: exit code %d: %s%s", code, stdout, stderr)
	}
	const denied = "access denied: allow it in the caller's IAM policy (leasehold table policy --prefix PREFIX prints one): " +
		"AccessDeniedException: User: x is not authorized to perform: dynamodb:UpdateItem"
	lab.WantParts(t, "run", refuses(t, env, 125, denied, "run", "k", "--", "true"), "leasehold: acquire k in table locks in http://127.0.0.1:")
	lab.WantMatch(t, "ls", refuses(t, env, 2, "", "ls", "--json"), `^{"error":"aws","message":"list in table locks`)
}

func TestVerboseFlagLogsEveryRequest(t *testing.T) {
	t.Parallel()
	_, env := served(t)
	for _, c := range []struct{ args, lines string }{
		{"acquire k", `leasehold: UpdateItem k: ok in [^ ]+s, attempt 1, capacity units 1, request \w+`},
		{"acquire -n k", `leasehold: UpdateItem k: ConditionalCheckFailedException in [^ ]+s, attempt 1, request \w+\nleasehold: k .*is held by .*`},
		{"acquire --json -n k", `{"time":"[^"]+","event":"request","key":"k","tookMs":\d+,"operation":"UpdateItem","attempt":1,"requestId":"\w+","outcome":"ConditionalCheckFailedException"}\n{"error":"held".*`},
		{"acquire --json other", `{"time":"[^"]+","event":"request","key":"other","tookMs":\d+,"operation":"UpdateItem","attempt":1,"requestId":"\w+","units":1,"outcome":"ok"}`},
		{"get k", `leasehold: GetItem k: ok in [^ ]+s, attempt 1, capacity units 1, request \w+`},
		{"ls", `leasehold: Scan: ok in [^ ]+s, attempt 1, capacity units 0.5, request \w+`},
		{"acquire -q third", ``},
	} {
		_, stderr, _ := said(t, env, append(strings.Fields(c.args), "-v")...)
		lab.WantMatch(t, c.args, stderr, `^`+c.lines+`\n?$`)
	}
}

func TestVerboseFlagLogsNumberOfEachAttempt(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	f := newFaulty(t, table.Spec{}, faultIf(func(string, *http.Request) bool { return requests.Add(1) <= 2 }, unavailable))
	_, stderr, code := said(t, f.env, "acquire", "-v", "k")
	if want := `^leasehold: UpdateItem k: 503 Service Unavailable in [^ ]+s, attempt 1
leasehold: UpdateItem k: 503 Service Unavailable in [^ ]+s, attempt 2
leasehold: UpdateItem k: ok in [^ ]+s, attempt 3, capacity units 1, request \w+
$`; code != 0 || !regexp.MustCompile(want).MatchString(stderr) {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// The command checks every second whether requests have failed for three seconds, and if so, prints
// why. So it prints the message after three to four seconds, or later on a busy machine.
func TestRunReportsFailingRequestsAsTextOrJSON(t *testing.T) {
	t.Parallel()
	throttles := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, "ProvisionedThroughputExceededException", "too much")
	}))
	t.Cleanup(throttles.Close)
	type variant struct{ url, flag, says string }
	lab.ParallelVariants(t, map[string]variant{
		"throttled": {throttles.URL, "--json=false",
			`leasehold: DynamoDB has throttled every request for [3-9]s: still trying: raise the table's capacity, or make it pay per request: ProvisionedThroughputExceededException\n` +
				`leasehold: acquire k in table locks in http:[^ ]*: throttled: raise the table's capacity, or make it pay per request: ProvisionedThroughputExceededException: too much\n`},
		"no server, as JSON": {noServer, "--json",
			`{"time":"[^"]+","event":"no_answer","lastsMs":[3-9]\d{3},"error":"no connection to http://127[^"]*: connection refused","advice":"check the network, the region and the endpoint"}\n` +
				`{"error":"aws","message":"acquire k in table locks.*\n`},
		"quiet": {throttles.URL, "-q", `leasehold: acquire k in table locks.*\n`},
	}, func(t *testing.T, c variant) {
		env := append(bare(t.TempDir()), "LEASEHOLD_TABLE=locks", "AWS_ENDPOINT_URL_DYNAMODB="+c.url)
		lab.WantMatch(t, "stderr", refuses(t, env, 125, "", "run", c.flag, "-w", "8s", "k", "--", "true"), `^`+c.says+`$`)
	})
}

func TestBreakReportsUnknownOutcomeIfReplyIsLost(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	f := newFaulty(t, table.Spec{}, func(op string, w http.ResponseWriter, r *http.Request, next http.Handler) {
		body := bodyOf(r)
		if op != "UpdateItem" || !bytes.Contains(body, []byte(`isReleased`)) || bytes.Contains(body, []byte("if_not_exists")) || broken.Swap(true) {
			next.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(httptest.NewRecorder(), r)
		if _, err := next.(*localdynamo.Engine).Client().DeleteItem(context.WithoutCancel(r.Context()), &dynamodb.DeleteItemInput{TableName: aws.String("locks"),
			Key: map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: "k"}}}); err != nil {
			t.Error(err)
		}
		panic(http.ErrAbortHandler) // closes the connection without a reply
	})
	succeeds(t, f.env, "acquire", "k")
	stderr := refuses(t, f.env, 2, "", "break", "k", "--yes", "--token", tokenOf(t, f.env, "k"), "--json")
	lab.WantMatch(t, "stderr", stderr, `^{"error":"unknown","message":"break k in table locks`)
}

// The server throttles renewals, so leasehold sends CMD the stop signal shortly before leasehold
// stops trusting the lock. CMD exits while leasehold still trusts the lock. The error message must
// nevertheless say why the lock was not renewed.
func TestRunReportsWhyCMDWasStopped(t *testing.T) {
	t.Parallel()
	// Use the program without the race detector. With the race detector, the watchdog would
	// take a second to exit, which is as long as the grace period.
	program := lab.Must(installed())(t)
	var updates atomic.Int32
	f := newFaulty(t, table.Spec{}, faultIf(func(op string, _ *http.Request) bool { return op == "UpdateItem" && updates.Add(1) > 1 },
		refusing("ProvisionedThroughputExceededException")))
	// The lease and the grace suit a busy machine: a reply may take two seconds, and CMD may need
	// five seconds to end. With a shorter lease, leasehold could not report the throttling. With a
	// shorter grace, CMD might end after leasehold has stopped trusting the lock.
	for _, args := range [][]string{
		{"run", "-l", "12s", "-g", "5s", "k", "--", "sleep", "60"},
		{"--json", "run", "-l", "12s", "-g", "5s", "j", "--", "sleep", "60"},
	} {
		updates.Store(0)
		_, stderr, code := saidBy(t, program, f.env, args...)
		if code != 123 || strings.Contains(stderr, "was renewed") ||
			!strings.Contains(stderr, " could not be renewed before trust was about to end; CMD was stopped: renew ") ||
			!strings.Contains(stderr[strings.LastIndex(stderr, "CMD was stopped: "):], " in table locks in http://127.0.0.1:") ||
			!strings.Contains(stderr[strings.LastIndex(stderr, "CMD was stopped: "):], "throttled: raise the table's capacity") {
			t.Errorf("exit code %d: %s", code, stderr)
		}
		const meanwhile = "leasehold: trust in k is about to end: stopping CMD\nleasehold: CMD has ended: trying to release k, for up to 5s\n"
		if args[0] == "run" && !strings.Contains(stderr, meanwhile) {
			t.Errorf("the messages about the stop of CMD are missing: %s", stderr)
		}
	}
}
