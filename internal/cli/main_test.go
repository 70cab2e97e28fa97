// The tests run the command in separate processes, as users do. Tests whose names end in
// OnAnyBackend use a lock table in a local store, which is a file. If LEASEHOLD_TEST_ENDPOINT is
// set, these tests use a table on the DynamoDB server at the URL in this variable:
//
//	LEASEHOLD_TEST_ENDPOINT=http://127.0.0.1:8000 go test ./internal/cli -run 'OnAnyBackend$'
package cli_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold/internal/cli"
	"github.com/leasehold-go/leasehold/internal/cli/invocation"
	"github.com/leasehold-go/leasehold/localdynamo/boltstore"
	"github.com/leasehold-go/leasehold/table"
)

func TestMain(m *testing.M) {
	testscript.Main(leakChecked{m}, map[string]func(){
		"leasehold":       func() { main(fromOS()) },
		"leasehold-alone": func() { main(alone()) },
		"fetch":           fetch,
		"fields":          fields,
	})
}

// main runs the command on a thread that is not the process's first thread. So no test can rely on
// a property that only the first thread has.
func main(env invocation.Env) {
	runtime.LockOSThread()
	code := make(chan int)
	go func() { code <- cli.Main(env) }()
	os.Exit(<-code)
}

// fromOS returns the environment of a command on a machine that is not an EC2 instance. The
// variable TEST_MACHINE_DIR names the directory of the machine's store; tests create it if
// needed. The variable TEST_FILE_SYSTEM sets the type of file system that the command sees.
func fromOS() invocation.Env {
	env := invocation.FromOS()
	no := func() bool { return false }
	env.MachineDir, env.OnEC2, env.OnTrial = os.Getenv("TEST_MACHINE_DIR"), no, no
	if kind := os.Getenv("TEST_FILE_SYSTEM"); kind != "" {
		env.FileSystem = func(string) (string, error) { return kind, nil }
	}
	return env
}

// alone returns an environment in which leasehold cannot find the path of its own program.
// So leasehold cannot start the gate process and the watchdog, which run the same program.
func alone() invocation.Env {
	env := fromOS()
	env.Executable = func() (string, error) { return "", errors.New("this program is not to be found") }
	return env
}

// catchIgnoredSignals catches each signal that a shell or nohup has made this process ignore, as a
// shell does with SIGINT in background jobs. Otherwise the processes that a test starts would
// ignore the signal too. A signal that this process catches has its default effect in those
// processes.
func catchIgnoredSignals() {
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGHUP, syscall.SIGQUIT} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}

// leakChecked runs the tests. Like goleak.VerifyTestMain, it then fails if goroutines have
// leaked. Its method Run returns the exit code instead of calling os.Exit,
// because testscript.Main calls os.Exit itself.
type leakChecked struct{ m *testing.M }

func (l leakChecked) Run() int {
	// Some tests run the command in this process, with another environment. The AWS SDK
	// reads the variables of this process even then. So remove the AWS_ variables.
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "AWS_") {
			_ = os.Unsetenv(name)
		}
	}
	catchIgnoredSignals()
	manyAtATime()
	code := l.m.Run()
	if installedIn != "" {
		_ = os.RemoveAll(installedIn)
	}
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, "goleak:", err)
		return 1
	}
	return code
}

// manyAtATime lets more tests run in parallel than there are cores, because most tests mostly
// wait, for example for a lease to expire. If -parallel is given, it does nothing.
func manyAtATime() {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0)))
	}
}

var installedIn string // directory of the program that the first call of installed() builds; empty before that call

// installed returns the path of a leasehold program without the race detector, like the program
// that users install. The first call builds the program. Tests that start leasehold many times use
// this program, because they would take minutes with the race detector.
var installed = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "leasehold-test-")
	if err != nil {
		return "", err
	}
	installedIn = dir
	path := filepath.Join(dir, "leasehold")
	if out, err := exec.Command("go", "build", "-o", path, "../../cmd/leasehold").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
})

// patience is how long a test waits for an event that must happen, before the test fails.
const patience = 30 * time.Second

// endpoint returns the URL of the DynamoDB server to test against, or "" to test with a
// local store.
func endpoint() string { return os.Getenv("LEASEHOLD_TEST_ENDPOINT") }

// bare returns the environment of a user with home directory dir and without settings for
// leasehold or AWS.
func bare(dir string) []string {
	return []string{
		"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(),
		// Without this variable, the SDK may request credentials from the EC2 metadata service.
		"AWS_EC2_METADATA_DISABLED=true",
		// By default, a program with the race detector sleeps for a second before it exits.
		"GORACE=atexit_sleep_ms=0",
	}
}

// newStoreFile creates the file of a local store, and the directory of the file. Otherwise the
// first command of a test would create the file, and print a message about the new store.
func newStoreFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	store, err := boltstore.Open(path)
	if err != nil {
		return err
	}
	return store.Close()
}

// withTable creates a lock table. It returns the variables of the function "bare", and the
// variables that select this table.
func withTable(dir string) ([]string, error) {
	env := bare(dir)
	if endpoint() == "" {
		file := filepath.Join(dir, "store", "locks.db")
		if err := newStoreFile(file); err != nil {
			return nil, err
		}
		return append(env, "LEASEHOLD_FILE="+file, "TEST_ID=1"), nil
	}
	name := "test-" + strings.ToLower(rand.Text())
	db := dynamodb.New(dynamodb.Options{
		HTTPClient:   &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
		BaseEndpoint: aws.String(endpoint()), Region: "local",
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
	if err := table.Create(context.Background(), db, table.Spec{Name: name}); err != nil {
		return nil, err
	}
	return append(env, "AWS_ENDPOINT_URL_DYNAMODB="+endpoint(), "LEASEHOLD_TABLE="+name, "TEST_ID="+name), nil
}

// rewrite is the value of the flag -rewrite. If it is true, tests store the output of a
// command as the expected output, instead of comparing the two. For example:
//
//	go test -run TestScriptsInTestdataPass/help ./internal/cli -rewrite
var rewrite = flag.Bool("rewrite", false, "write the output of commands into testdata/script")

func TestScriptsInTestdataPass(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", Cmds: scriptCommands, RequireExplicitExec: true, RequireUniqueNames: true,
		UpdateScripts: *rewrite,
		Setup: func(e *testscript.Env) error {
			e.Vars = append(e.Vars, bare(e.WorkDir)...)
			return nil
		},
	})
}

func TestScriptsInTestdataPassOnAnyBackend(t *testing.T) {
	t.Parallel()
	runOnAnyBackend(t, "testdata/table")
	for _, layout := range []string{"awslabs", "dynamolock"} {
		t.Run(layout, func(t *testing.T) { runOnAnyBackend(t, "testdata/layouts", "LAYOUT="+layout) })
	}
}

func runOnAnyBackend(t *testing.T, dir string, more ...string) {
	testscript.Run(t, testscript.Params{
		Dir: dir, Cmds: scriptCommands, RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			env, err := withTable(e.WorkDir)
			e.Vars = slices.Concat(e.Vars, env, more)
			return err
		},
	})
}

var scriptCommands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	// The script command "exits CODE COMMAND [ARG...]" runs COMMAND and checks that the
	// exit code is CODE.
	"exits": func(ts *testscript.TestScript, neg bool, args []string) {
		want, err := strconv.Atoi(args[0])
		ts.Check(err)
		if got := exitCode(ts.Exec(args[1], args[2:]...)); (got == want) == neg {
			ts.Fatalf("exit code %d, not %d\nstdout: %s\nstderr: %s", got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
		}
	},
	// The script command "cmpkinds FILE KIND..." checks that the events in FILE have
	// exactly these kinds, in this order.
	"cmpkinds": func(ts *testscript.TestScript, _ bool, args []string) {
		var kinds []string
		for _, line := range strings.Split(strings.TrimSpace(ts.ReadFile(args[0])), "\n") {
			var e struct{ Event string }
			ts.Check(json.Unmarshal([]byte(line), &e))
			kinds = append(kinds, e.Event)
		}
		if !slices.Equal(kinds, args[1:]) {
			ts.Fatalf("kinds %v, not %v", kinds, args[1:])
		}
	},
	// The script command "table NAME" selects another table in the same store. In a local store, it
	// also sets LEASEHOLD_HELD, as leasehold run does for CMD. Otherwise leasehold would not accept
	// LEASEHOLD_TABLE together with LEASEHOLD_FILE.
	"table": func(ts *testscript.TestScript, _ bool, args []string) {
		ts.Setenv("LEASEHOLD_TABLE", args[0])
		if file := ts.Getenv("LEASEHOLD_FILE"); file != "" {
			ts.Setenv("LEASEHOLD_HELD", fmt.Sprintf(`[{"key":"above","table":%q,"store":%q}]`, args[0], file))
		}
	},
	// The script command "eventually COMMAND [ARG...]" runs COMMAND repeatedly until the
	// exit code is 0.
	"eventually": func(ts *testscript.TestScript, _ bool, args []string) {
		deadline := time.Now().Add(patience)
		for ts.Exec(args[0], args[1:]...) != nil {
			if time.Now().After(deadline) {
				ts.Fatalf("%s never succeeded", strings.Join(args, " "))
			}
			time.Sleep(10 * time.Millisecond)
		}
	},
}

func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -1
}

// eventually calls the function "happened" repeatedly until the function returns true. It fails the
// test if this takes longer than the constant "patience". In the failure message, the text "event"
// describes what the test has waited for.
func eventually(t *testing.T, event string, happened func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !happened(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", event, patience)
		}
	}
}
