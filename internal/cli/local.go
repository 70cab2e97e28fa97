package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/process"
	"github.com/leasehold-go/leasehold/internal/cli/serve"
	"github.com/leasehold-go/leasehold/internal/visible"
	"github.com/leasehold-go/leasehold/localdynamo"
)

func (a *app) newLocal() *cobra.Command {
	var addr string
	cmd := &cobra.Command{
		Use:   "local [flags] [-- CMD [ARG...]]",
		Short: "Serve the embedded engine on loopback",
		Long: `Serve the DynamoDB API on loopback, for tests and for clients in other
languages. Tables are in memory, or in --file PATH. With CMD, runs CMD with
AWS_ENDPOINT_URL_DYNAMODB set, and exits when CMD does.

Every user of the machine can connect. So it answers only requests that are
signed with its own AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, whatever they
are. Without them in its environment it makes a pair that ends with it. CMD gets
the pair; without CMD it is printed, as a line for the shell.`,
		Example: `  leasehold local --addr 127.0.0.1:0 -- pytest
  leasehold local               # in another shell: the line it printed, and
  aws dynamodb list-tables
  AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test leasehold local`,
		Annotations: map[string]string{runsCMD: afterDashes},
		Args: func(cmd *cobra.Command, args []string) error {
			switch dash := cmd.ArgsLenAtDash(); {
			case dash < 0 && len(args) > 0, dash > 0:
				return usageOf(cmd, "unexpected argument %s: put -- before CMD", visible.Name(args[0]))
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
		if path, err = process.Find(command[0]); err != nil {
			return err
		}
	}
	listener, err := serve.Loopback(ctx, addr)
	if err != nil {
		return err
	}
	defer listener.Close()
	key := serve.KeyIn(a.get)
	opts, where := []localdynamo.Option{localdynamo.WithAccessKey(key.ID, key.Secret)}, "in memory"
	file, err := a.fileToServe()
	if err != nil {
		return err
	}
	if file != "" {
		if err := a.makeNamed(file); err != nil {
			return err
		}
		tables, err := a.flags.OpenFile(file)
		if err != nil {
			return err
		}
		opts, where = append(opts, localdynamo.WithStore(tables)), "in "+file
	}
	engine := localdynamo.New(opts...)
	defer engine.Close()
	server := serve.Engine(engine)
	signals := process.CatchSignals()
	defer signals.Release()
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer server.Close()

	url := "http://" + listener.Addr().String()
	variables := key.Variables(a.get, url)
	if len(command) > 0 {
		return runLocal(&exec.Cmd{
			Path: path, Args: command, Stdin: a.Stdin, Stdout: a.Env.Stdout, Stderr: a.Env.Stderr, Env: append(key.Without(a.Environ), variables...),
		}, signals)
	}
	asJSON := map[string]string{"endpointUrl": url}
	if key.Made {
		asJSON["accessKeyId"], asJSON["secretAccessKey"] = key.ID, key.Secret
	}
	err = a.sayURL(url, asJSON, "serving the DynamoDB API on %s, tables are %s; press Ctrl-C to stop\n", url, where)
	if err == nil && key.Made && !a.flags.json {
		_, err = fmt.Fprintf(a.Stdout, "export %s\n", strings.Join(variables, " "))
	}
	if err != nil {
		return err
	}
	ctx, cancel := signals.Bind(ctx)
	defer cancel()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
		return nil // a signal is the normal way to end it
	}
}

// fileToServe returns the file of --file or LEASEHOLD_FILE, empty for none.
func (a *app) fileToServe() (string, error) {
	if a.flags.File != "" || a.flags.Table != "" {
		return a.flags.File, nil
	}
	file, _, err := a.flags.Variable("LEASEHOLD_FILE")
	return file, err
}

// sayURL writes the URL that is served: on a terminal in words, in a pipe alone.
func (a *app) sayURL(url string, asJSON map[string]string, words string, args ...any) error {
	var err error
	switch {
	case a.flags.json:
		err = json.NewEncoder(a.Stdout).Encode(asJSON)
	case a.Stdout.Terminal:
		_, err = fmt.Fprintf(a.Stdout, words, args...)
	default:
		_, err = fmt.Fprintln(a.Stdout, url)
	}
	return err
}

// runLocal runs CMD, passes signals on to it, and returns its exit code.
func runLocal(cmd *exec.Cmd, signals *process.Signals) error {
	c, err := process.Start(cmd)
	if err != nil {
		return process.StartError(cmd.Args[0], err)
	}
	for {
		select {
		case sig := <-signals.C:
			c.PassOn(sig)
		case sig := <-c.Stops:
			c.WasStopped(sig)
		case <-c.Exited:
			if code := c.Reap(); code != 0 {
				return failure.Exit(code, nil)
			}
			return nil
		}
	}
}
