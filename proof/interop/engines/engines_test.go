//go:build linux

package engines

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestMain(m *testing.M) {
	if name := os.Getenv("LEASEHOLD_ENGINES_HOLD"); name != "" {
		hold(name)
	}
	goleak.VerifyTestMain(m)
}

func TestStoppedDynamoDBServerLeavesNoProcess(t *testing.T) {
	Each(t, func(t *testing.T, e Engine) {
		s := Run(t, e)
		lab.Must(s.Client().ListTables(t.Context(), &dynamodb.ListTablesInput{}))(t)
		family := append(descendants(t, s.process.PID()), s.process.PID())
		lab.OK(t, s.Stop())
		gone(t, family)
		if conn, err := net.Dial("tcp", strings.TrimPrefix(s.Endpoint, "http://")); err == nil {
			conn.Close()
			t.Error("something still listens on the endpoint")
		}
	})
}

func TestDynamoDBServerListensOnlyOnLoopback(t *testing.T) {
	Each(t, func(t *testing.T, e Engine) {
		s := Run(t, e)
		ours := lab.Must(os.Readlink("/proc/self/ns/net"))(t)
		family := append(descendants(t, s.process.PID()), s.process.PID())
		var open int
		for _, pid := range family {
			theirs := lab.Must(os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "ns", "net")))(t)
			if theirs != ours {
				onlyLoopback(t, pid)
				continue
			}
			for _, addr := range lab.Must(listening(pid))(t) {
				open++
				lab.Want(t, fmt.Sprintf("process %d listens on loopback: %s", pid, addr), addr.Addr().IsLoopback(), true)
			}
		}
		lab.Want(t, "test checks the wrong processes: found no listener", e.Name == Dynoxide.Name && open == 0, false)
		// A server in a network namespace of its own must be reachable on a loopback
		// address of the test's namespace.
		if addr, err := netip.ParseAddrPort(strings.TrimPrefix(s.Endpoint, "http://")); err != nil || !addr.Addr().IsLoopback() {
			t.Errorf("endpoint %s (%v), want one on loopback", s.Endpoint, err)
		}
	})
}

// onlyLoopback fails the test unless lo is the only interface in the network namespace of the
// process. Then no other machine can reach the process, whatever address it listens on.
func onlyLoopback(t *testing.T, pid int) {
	t.Helper()
	content := lab.Must(os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "net", "dev")))(t)
	var lo bool
	for line := range strings.Lines(string(content)) {
		name, _, ok := strings.Cut(strings.TrimSpace(line), ":")
		switch {
		case !ok: // the line is a heading of /proc/PID/net/dev
		case name == "lo":
			lo = true
		default:
			t.Errorf("process %d has the interface %s", pid, name)
		}
	}
	lab.Want(t, fmt.Sprintf("process %d has a loopback interface", pid), lo, true)
}

func TestDynamoDBServerEndsWhenParentIsKilled(t *testing.T) {
	Each(t, func(t *testing.T, e Engine) {
		parent := exec.Command(os.Args[0])
		parent.Env = append(os.Environ(), "LEASEHOLD_ENGINES_HOLD="+e.Name)
		parent.Stderr = os.Stderr
		stdout := lab.Must(parent.StdoutPipe())(t)
		lab.OK(t, parent.Start())
		if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "ready\n" {
			t.Errorf("the parent printed %q, %v", line, err)
		}
		family := descendants(t, parent.Process.Pid)
		lab.Want(t, "the parent has a child process", len(family) > 0, true)
		lab.OK(t, parent.Process.Signal(syscall.SIGKILL))
		_ = parent.Wait() // ignores the error, which only says that the parent was killed
		gone(t, family)
	})
}

// hold starts the named engine, and then waits to be killed. It runs in the child process of
// TestDynamoDBServerEndsWhenParentIsKilled.
func hold(name string) {
	e, err := Find(name)
	if err == nil {
		_, err = e.Start(context.Background())
	}
	if err != nil {
		os.Stdout.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	os.Stdout.WriteString("ready\n")
	select {}
}

func TestDynamoDBServerKeepsTablesAcrossRestart(t *testing.T) {
	Each(t, func(t *testing.T, e Engine) {
		kept := e.In(t.TempDir())
		first := Run(t, kept)
		lab.Must(first.Client().CreateTable(t.Context(), &dynamodb.CreateTableInput{
			TableName:            aws.String("kept"),
			BillingMode:          types.BillingModePayPerRequest,
			KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("k"), KeyType: types.KeyTypeHash}},
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("k"), AttributeType: types.ScalarAttributeTypeS}},
		}))(t)
		lab.OK(t, first.Stop())
		out := lab.Must(Run(t, kept).Client().ListTables(t.Context(), &dynamodb.ListTablesInput{}))(t)
		lab.Want(t, "tables", out.TableNames, []string{"kept"})
	})
}

func TestInstalledDynamoDBServerHasPinnedVersion(t *testing.T) {
	dir := lab.Must(Dynoxide.Install(t.Context()))(t)
	out, err := exec.Command(filepath.Join(dir, "node_modules", "@dynoxide", "linux-x64", "dynoxide"), "--version").Output()
	if got, want := strings.TrimSpace(string(out)), "dynoxide "+Dynoxide.Version; err != nil || got != want {
		t.Errorf("installed %q (%v), want %q", got, err, want)
	}
	dir = lab.Must(DynamoDBLocal.Install(t.Context()))(t)
	lab.Must(os.Stat(filepath.Join(dir, "lib", "DynamoDBLocal-"+DynamoDBLocal.Version+".jar")))(t)
}

func TestInstallErrorSaysHowToInstallMissingTool(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("LEASEHOLD_ENGINES", t.TempDir())
	_, err := Dynoxide.Install(t.Context())
	lab.WantText(t, "dynoxide", err, "npm is not on PATH", "apt-get install npm")
	_, err = DynamoDBLocal.Install(t.Context())
	lab.WantText(t, "DynamoDB Local", err, "java is not on PATH", "apt-get install openjdk-17-jre-headless")
}

func TestParseAddrParsesHexAddressesOfProcNetTCP(t *testing.T) {
	for in, want := range map[string]string{
		"0100007F:1F90":                         "127.0.0.1:8080",
		"00000000:0050":                         "0.0.0.0:80",
		"00000000000000000000000001000000:0016": "[::1]:22",
	} {
		lab.Want(t, in, lab.Must(parseAddr(in))(t).String(), want)
	}
	lab.WantFailed(t, "parseAddr", lab.ErrorOf(parseAddr("nonsense")))
}

// descendants returns the IDs of the processes that descend from pid.
func descendants(t *testing.T, pid int) []int {
	t.Helper()
	lists := lab.Must(filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "children")))(t)
	var all []int
	for _, list := range lists {
		content, err := os.ReadFile(list)
		if err != nil {
			continue // this thread of the process has ended meanwhile
		}
		for field := range strings.FieldsSeq(string(content)) {
			child := lab.Must(strconv.Atoi(field))(t)
			all = append(append(all, child), descendants(t, child)...)
		}
	}
	return all
}

// gone fails the test unless all given processes end. It waits for the processes, because some
// end only after another process has died.
func gone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // the process has already ended
		}
		defer unix.Close(fd)
		ended := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		const tenSeconds = 10_000
		n, err := unix.Poll(ended, tenSeconds)
		for errors.Is(err, unix.EINTR) { // repeat Poll if a signal of the Go runtime has interrupted it
			n, err = unix.Poll(ended, tenSeconds)
		}
		if n != 1 {
			t.Errorf("process %d is still running (%v)", pid, err)
		}
	}
}
