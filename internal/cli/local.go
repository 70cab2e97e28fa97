package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold/localdynamo"
)

func (a *app) newLocal() *cobra.Command {
	var addr string
	cmd := &cobra.Command{
		Use:   "local [flags] [-- CMD [ARG...]]",
		Short: "Serve the embedded engine on loopback",
		Long: `Serve the DynamoDB API on loopback, for tests and for clients in other
languages. It accepts any credentials. Tables are in memory, or in --file PATH.
With CMD, runs CMD with AWS_ENDPOINT_URL_DYNAMODB set, and exits when CMD does.`,
		Example: `  leasehold local
  aws dynamodb list-tables --endpoint-url http://127.0.0.1:8000
  leasehold local --addr 127.0.0.1:0 -- pytest`,
		Annotations: map[string]string{runsCMD: afterDashes},
		Args: func(cmd *cobra.Command, args []string) error {
			switch dash := cmd.ArgsLenAtDash(); {
			case dash < 0 && len(args) > 0, dash > 0:
				return usageOf(cmd, "unexpected argument %s: put -- before CMD", printable(args[0]))
			case dash == 0 && len(args) == 0:
				return usageOf(cmd, "CMD is missing after --")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.local(cmd.Context(), addr, args) },
	}
	cmd.Flags().StringVar(&addr, "addr", "127.0.0.1:8000", "loopback `ADDRESS` to listen on; port 0 picks a free port")
	return cmd
}

func (a *app) local(ctx context.Context, addr string, command []string) error {
	var path string
	if len(command) > 0 {
		var err error
		if path, err = findCommand(command[0]); err != nil {
			return err
		}
	}
	listener, err := listenLoopback(ctx, addr)
	if err != nil {
		return err
	}
	var opts []localdynamo.Option
	where := "in memory"
	file, err := fileToServe(a.flags, a.Env)
	if err != nil {
		_ = listener.Close()
		return err
	}
	if file != "" {
		var store localdynamo.Store
		if err = a.makeNamed(file); err == nil {
			store, err = openStoreFile(file)
		}
		if err != nil {
			_ = listener.Close()
			return err
		}
		opts, where = append(opts, localdynamo.WithStore(store)), "in "+file
	}
	engine := localdynamo.New(opts...)
	defer engine.Close()
	server := newLocalServer(engine)
	signals := catchSignals()
	defer signals.release()
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer server.Close()
	url := "http://" + listener.Addr().String()

	if len(command) > 0 {
		return a.runLocal(&exec.Cmd{
			Path: path, Args: command, Stdin: a.Stdin, Stdout: a.Stdout, Stderr: a.Stderr, Env: a.localEnv(url),
		}, signals)
	}
	if err := a.sayURL(url, "endpointUrl", "serving the DynamoDB API on %s, tables are %s; press Ctrl-C to stop\n", url, where); err != nil {
		return err
	}
	ctx, cancel := signals.bind(ctx)
	defer cancel()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
		return nil // a signal is the normal way to end it
	}
}

// fileToServe returns the file of --file or LEASEHOLD_FILE, empty for none.
func fileToServe(f globalFlags, env Env) (string, error) {
	if f.file != "" || f.table != "" {
		return f.file, nil
	}
	file, _, err := env.setting("LEASEHOLD_FILE")
	return file, err
}

// sayURL writes the URL that is served: as JSON in that field, on a terminal in words.
// In a pipe it writes nothing else.
func (a *app) sayURL(url, field, words string, args ...any) error {
	var err error
	switch {
	case a.flags.json:
		err = json.NewEncoder(a.Stdout).Encode(map[string]string{field: url})
	case isTerminal(a.Stdout):
		_, err = fmt.Fprintf(a.Stdout, words, args...)
	default:
		_, err = fmt.Fprintln(a.Stdout, url)
	}
	return err
}

// listenLoopback listens on this machine only: anybody who can connect to the
// engine can read and write everything in it.
func listenLoopback(ctx context.Context, addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, usagef("--addr %s: use HOST:PORT, such as 127.0.0.1:8000", addr)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || port != strconv.FormatUint(n, 10) {
		return nil, usagef("--addr %s: the port must be a number from 0 to 65535", addr)
	}
	if !isThisMachine(host) {
		return nil, usagef("--addr %s: the engine is for this machine only: use 127.0.0.1:%s", addr, port)
	}
	return listen(ctx, addr)
}

// listen listens on the address of --addr.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, usagef("%s is in use: choose another address with --addr, such as 127.0.0.1:0 for any free port", addr)
	}
	if err != nil {
		return nil, usagef("--addr %s: %v", addr, err)
	}
	return listener, nil
}

// localEnv returns the environment of a CMD that uses the engine. It adds a
// placeholder region and credentials if none are set.
func (a *app) localEnv(url string) []string {
	var env []string
	for _, kv := range a.Environ {
		if !strings.HasPrefix(kv, "AWS_ENDPOINT_URL_DYNAMODB=") {
			env = append(env, kv)
		}
	}
	env = append(env, "AWS_ENDPOINT_URL_DYNAMODB="+url)
	if a.get("AWS_REGION") == "" && a.get("AWS_DEFAULT_REGION") == "" {
		env = append(env, "AWS_REGION="+placeholder, "AWS_DEFAULT_REGION="+placeholder)
	}
	if a.get("AWS_ACCESS_KEY_ID") == "" && a.get("AWS_PROFILE") == "" {
		env = append(env, "AWS_ACCESS_KEY_ID="+placeholder, "AWS_SECRET_ACCESS_KEY="+placeholder)
	}
	return env
}

// runLocal runs CMD, passes signals on to it, and returns its exit code.
func (a *app) runLocal(cmd *exec.Cmd, signals *signals) error {
	c, err := startChild(cmd)
	if err != nil {
		return startError(cmd.Args[0], err)
	}
	for {
		select {
		case sig := <-signals.c:
			c.passOn(sig)
		case sig := <-c.stops:
			c.wasStopped(sig)
		case <-c.exited:
			if code := c.reap(); code != 0 {
				return exit(code, nil)
			}
			return nil
		}
	}
}
