package examples_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/table"
)

// built is the directory that contains the compiled examples and the compiled leasehold
// command.
var built string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "examples")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		built = dir
		build := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "./...", "../cmd/leasehold")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Printf("%v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// tooLong limits the run time of each process. unread limits how long the child processes
// of an ended process may keep its output open. With these limits, a test fails instead of
// hanging if a process hangs.
const (
	tooLong = 2 * time.Minute
	unread  = 10 * time.Second
)

// process is a running program and the lines that it prints.
type process struct {
	cmd    *exec.Cmd
	lines  *bufio.Scanner
	stderr strings.Builder
}

func start(t *testing.T, env []string, name string, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), tooLong)
	p := &process{cmd: exec.CommandContext(ctx, filepath.Join(built, name), args...)}
	p.cmd.Env, p.cmd.Stderr, p.cmd.WaitDelay = env, &p.stderr, unread
	t.Cleanup(func() { _ = p.cmd.Wait() })
	t.Cleanup(cancel) // runs before the cleanup above, which calls Wait
	p.lines = bufio.NewScanner(lab.Must(p.cmd.StdoutPipe())(t))
	lab.OK(t, p.cmd.Start())
	return p
}

// until reads lines until one begins with the given text, and returns that line.
func (p *process) until(t *testing.T, text string) string {
	t.Helper()
	var read []string
	for p.lines.Scan() {
		read = append(read, p.lines.Text())
		if strings.HasPrefix(p.lines.Text(), text) {
			return p.lines.Text()
		}
	}
	err := p.cmd.Wait()
	t.Fatalf("it ended before it printed %q, %v; it printed %q and\n%s", text, err, read, &p.stderr)
	return ""
}

// run runs a program, waits for its end, and returns the lines that it printed.
func run(t *testing.T, env []string, name string, args ...string) []string {
	t.Helper()
	p := start(t, env, name, args...)
	var read []string
	for p.lines.Scan() {
		read = append(read, p.lines.Text())
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("%s: %v; it printed %q and\n%s", name, err, read, &p.stderr)
	}
	return read
}

// runAll runs a program the given number of times, all concurrently. It returns the lines
// of all runs, sorted.
func runAll(t *testing.T, env []string, times int, name string, args ...string) []string {
	var mu sync.Mutex
	var read []string
	var all sync.WaitGroup
	for range times {
		p := start(t, env, name, args...)
		all.Go(func() {
			for p.lines.Scan() {
				mu.Lock()
				read = append(read, p.lines.Text())
				mu.Unlock()
			}
			if err := p.cmd.Wait(); err != nil {
				t.Errorf("%s: %v\n%s", name, err, &p.stderr)
			}
		})
	}
	all.Wait()
	slices.Sort(read)
	return read
}

// withoutSettings returns this process's environment without settings of AWS and leasehold.
func withoutSettings() []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "AWS_") || strings.HasPrefix(kv, "LEASEHOLD_")
	})
}

// local starts the command "leasehold local", a local DynamoDB server. It returns
// environment variables that make programs use this server.
func local(t *testing.T) (env []string, url string) {
	t.Helper()
	env = append(withoutSettings(), "HOME="+t.TempDir(), "AWS_REGION=local", "AWS_ACCESS_KEY_ID=example", "AWS_SECRET_ACCESS_KEY=example")
	url = start(t, env, "leasehold", "local", "--addr", "127.0.0.1:0").until(t, "http://")
	return append(env, "AWS_ENDPOINT_URL_DYNAMODB="+url), url
}

func TestHelloExampleRunsWhetherOrNotTableExists(t *testing.T) {
	t.Parallel()
	env, _ := local(t)
	for _, when := range []string{"without a table", "with a table"} {
		if got := run(t, env, "hello"); !slices.Equal(got, []string{"working on nightly-report"}) {
			t.Errorf("%s: it printed %q", when, got)
		}
	}
}

func TestCronExampleRunsJobOncePerPeriod(t *testing.T) {
	t.Parallel()
	env, _ := local(t)
	// The period is a century: with a period of a day, the test would fail if midnight passed
	// while it runs.
	got := runAll(t, env, 3, "cron", "-every", "876000h")
	if len(got) != 3 || got[2] != "writing the report" || got[0] != got[1] || !strings.HasPrefix(got[0], "the report is written: the work of ") {
		t.Errorf("three hosts printed %q", got)
	}
}

func TestCustomersExamplePaysEachInvoiceOnce(t *testing.T) {
	t.Parallel()
	env, _ := local(t)
	var want []string
	for _, customer := range []string{"ann", "bob", "cid"} {
		for n := 1; n <= 3; n++ {
			want = append(want, fmt.Sprintf("%s: invoice %d is paid", customer, n))
		}
	}
	if got := runAll(t, env, 2, "customers"); !slices.Equal(got, want) {
		t.Errorf("two processes printed %q", got)
	}
}

func TestElectionExampleReplacesKilledLeader(t *testing.T) {
	t.Parallel()
	env, _ := local(t)
	north := start(t, env, "election", "north")
	north.until(t, "north leads, term ")
	south := start(t, env, "election", "south")
	south.until(t, "south sees that north leads")
	lab.OK(t, north.cmd.Process.Kill())
	south.until(t, "south leads, term ")
}

func TestProcessesExampleTakesOverFromKilledHolder(t *testing.T) {
	t.Parallel()
	env, _ := local(t)
	killed, heir := "", ""
	pages := map[string]bool{}
	for _, line := range run(t, env, "processes") {
		name, did, _ := strings.Cut(line, " ")
		if page, ok := strings.CutPrefix(did, "wrote page "); ok {
			if pages[page] {
				t.Errorf("page %s was written twice", page)
			}
			pages[page] = true
		}
		if name == "killed" {
			killed, _, _ = strings.Cut(did, ":")
		}
		if killed != "" && did == "took over from "+killed {
			heir = name
		}
	}
	if killed == "" || heir == "" || heir == killed || !pages["3"] || len(pages) < 4 {
		t.Errorf("%q was killed, %q took over, these pages were written: %v", killed, heir, pages)
	}
}

func TestDynamolockExampleTakesOverFromDeadHolder(t *testing.T) {
	t.Parallel()
	env, url := local(t)
	db := dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(url), Region: "local", Credentials: credentials.NewStaticCredentialsProvider("example", "example", ""),
	})
	lab.OK(t, table.Create(t.Context(), db, table.Spec{Name: "locks", Layout: layout.Dynamolock{}}))
	// A process that used dynamolock died while it held the lock, and left this record.
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	lab.Must(db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("locks"), Item: map[string]types.AttributeValue{
		"key": text("invoices"), "ownerName": text("old"), "leaseDuration": text("1s"), "recordVersionNumber": text("aaaa"),
		"data": &types.AttributeValueMemberB{Value: []byte("by dynamolock")},
	}}))(t)
	var tokens []int64
	for _, name := range []string{"dynamolock", "native", "dynamolock"} { // the move from dynamolock to native, and the move back
		var token int64
		for _, line := range run(t, append(slices.Clone(env), "LOCK_LAYOUT="+name), "dynamolock") {
			if _, err := fmt.Sscanf(line, "layout "+name+": holds invoices with token %d", &token); err != nil {
				t.Errorf("%q: %v", line, err)
			}
		}
		tokens = append(tokens, token)
	}
	if tokens[0] == 0 || tokens[1] != tokens[0]+1 || tokens[2] != tokens[1]+1 {
		t.Errorf("the tokens are %d", tokens)
	}
}
