//go:build linux

// Command engines installs and starts the real servers that tests and benchmarks use:
//
//	engines install               installs all of them
//	engines serve NAME            starts one, prints its endpoint, and runs until interrupted
//	engines run NAME COMMAND...   runs a command with the endpoint in LEASEHOLD_DYNOXIDE_ENDPOINT
//	                              or LEASEHOLD_DYNAMODB_LOCAL_ENDPOINT
//
// NAME is dynoxide or "DynamoDB Local".
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/leasehold-go/leasehold/proof/interop/engines"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := do(ctx, os.Args[1:])
	stop()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit): // the started program has already printed its own error
		os.Exit(exit.ExitCode())
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func do(ctx context.Context, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "install":
		return install(ctx)
	case len(args) == 2 && args[0] == "serve":
		return with(ctx, args[1], func(s *engines.Server) error {
			fmt.Println(s.Endpoint)
			<-ctx.Done()
			return nil
		})
	case len(args) >= 3 && args[0] == "run":
		return with(ctx, args[1], func(s *engines.Server) error {
			cmd := exec.CommandContext(ctx, args[2], args[3:]...)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
			cmd.Env = append(os.Environ(), variable(s.Name)+"="+s.Endpoint)
			return cmd.Run()
		})
	}
	return errors.New("usage: engines install | engines serve NAME | engines run NAME COMMAND ARGUMENTS")
}

func install(ctx context.Context) error {
	for _, e := range engines.All() {
		dir, err := e.Install(ctx)
		if err != nil {
			return err
		}
		fmt.Println(e.Name, e.Version, "in", dir)
	}
	return nil
}

func with(ctx context.Context, name string, fn func(*engines.Server) error) error {
	e, err := engines.Find(name)
	if err != nil {
		return err
	}
	s, err := e.Start(ctx)
	if err != nil {
		return err
	}
	return errors.Join(fn(s), s.Stop())
}

// variable returns the name of the environment variable that contains the endpoint of the
// named engine.
func variable(name string) string {
	return "LEASEHOLD_" + strings.ToUpper(strings.ReplaceAll(name, " ", "_")) + "_ENDPOINT"
}
