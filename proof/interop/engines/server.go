//go:build linux

package engines

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold-go/leasehold/proof/interop/process"
)

// Server is a running server process of an engine.
type Server struct {
	Name     string
	Endpoint string // http://127.0.0.1:port

	process *process.Process
	stdin   io.Closer     // closing stdin ends a server that runs in a network namespace
	output  *process.Tail // last kilobytes of the server's output
}

// Run starts an engine for a test and stops it when the test ends. If the engine cannot be
// installed, the test fails.
func Run(t testing.TB, e Engine) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	s, err := e.Start(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Client returns an SDK client of the server, with Region "local" and placeholder credentials.
// Each SDK client has a separate HTTP client with its own connections. A function in optFns can
// set another HTTP client.
func (s *Server) Client(optFns ...func(*dynamodb.Options)) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(s.Endpoint),
		Region:       "local",
		Credentials:  credentials.NewStaticCredentialsProvider("local", "local", ""),
	}, optFns...)
}

// Stop ends the server and waits until its process has ended. A second call has no effect.
func (s *Server) Stop() error {
	_ = s.stdin.Close()
	if err := s.process.Kill(); err != nil {
		return fmt.Errorf("engines: stop %s: %w", s.Name, err)
	}
	return nil
}

type command struct {
	path      string
	name      string // value of argv[0] for the process; if empty, argv[0] is path
	args      []string
	namespace bool // true to start the process in a new network namespace
	files     []*os.File
}

// launch starts the server as a child process, which ends when the calling process ends.
func launch(c command) (*Server, error) {
	cmd := exec.Command(c.path, c.args...)
	if c.name != "" {
		cmd.Args[0] = c.name
	}
	s := &Server{output: &process.Tail{}}
	cmd.Stdout, cmd.Stderr = s.output, s.output
	cmd.ExtraFiles = c.files
	if c.namespace {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
		if uid := os.Getuid(); uid != 0 { // without root rights, a process needs a user namespace to create a network namespace
			cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
			cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
		}
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	s.stdin = stdin
	if s.process, err = process.Start(cmd); err != nil {
		return nil, err
	}
	return s, nil
}

// waitUntilReady waits until the server has answered a request, even with an error.
func (s *Server) waitUntilReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		if s.answers(ctx, &client) {
			return nil
		}
		select {
		case <-s.process.Ended():
			return fmt.Errorf("it ended (%w) after printing\n%s", s.process.Err(), s.output)
		case <-ctx.Done():
			return fmt.Errorf("%w; it printed\n%s", context.Cause(ctx), s.output)
		case <-again.C:
		}
	}
}

func (s *Server) answers(ctx context.Context, client *http.Client) bool {
	if s.Endpoint == "" { // the server has chosen its port itself; the kernel's list of sockets shows the port
		at, err := listening(s.process.PID())
		if err != nil || len(at) == 0 {
			return false
		}
		s.Endpoint = "http://" + at[0].String()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Endpoint, nil)
	if err != nil {
		return false
	}
	reply, err := client.Do(req)
	if err != nil {
		return false
	}
	_ = reply.Body.Close()
	return true
}
