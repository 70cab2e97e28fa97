package setup

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/process"
	"github.com/leasehold-go/leasehold/internal/cli/serve"
	"github.com/leasehold-go/leasehold/internal/visible"
	"github.com/leasehold-go/leasehold/localdynamo"
)

// Default addresses of "leasehold local". Without a CMD, the default is defaultAddr, which
// is the same in each run, so that users can type it. With a CMD, the default is freePort,
// because CMD reads the address from its environment.
const (
	defaultAddr = "127.0.0.1:8000"
	freePort    = "127.0.0.1:0"
)

// Local returns the command "leasehold local".
func (c *Commands) Local() *cobra.Command {
	var addr string
	cmd := &cobra.Command{
		Use:         "local [flags] [-- CMD [ARG...]]",
		Short:       "Serve the embedded engine on loopback",
		Annotations: map[string]string{arguments.RunsCMD: arguments.AfterDashes},
		Args: func(cmd *cobra.Command, args []string) error {
			switch dash := cmd.ArgsLenAtDash(); {
			case dash < 0 && len(args) > 0, dash > 0:
				return failure.MisuseOf(cmd, "unexpected argument %s: put -- before CMD", visible.Name(args[0]))
			case dash == 0 && len(args) == 0:
				return failure.MisuseOf(cmd, "CMD is missing after --")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return c.local(cmd.Context(), addr, args) },
	}
	cmd.Flags().StringVar(&addr, "addr", "", "loopback `ADDRESS` to listen on; port 0 picks a free port (default 127.0.0.1:8000, or a free port with CMD)")
	return cmd
}

func (c *Commands) local(ctx context.Context, addr string, command []string) error {
	var path string
	var err error
	usual := defaultAddr
	if len(command) > 0 {
		usual = freePort
		if path, err = process.Find(command[0]); err != nil {
			return err
		}
	}
	key := serve.KeyIn(c.Settings.Getenv)
	opts, where := []localdynamo.Option{localdynamo.WithAccessKey(key.ID, key.Secret)}, "in memory"
	file := c.Settings.File
	if file == "" && c.Settings.Table == "" {
		if file, err = c.Settings.Variable("LEASEHOLD_FILE"); err != nil {
			return err
		}
	}
	// Open the file before listening at the address. If both would fail, the user sees the
	// error about the file, which is the more important one.
	if file != "" {
		if err := c.MakeFile(file); err != nil {
			return err
		}
		tables, err := c.Settings.OpenFile(ctx, file)
		if err != nil {
			return err
		}
		opts, where = append(opts, localdynamo.WithStore(tables)), "in "+file
	}
	engine := localdynamo.New(opts...)
	defer engine.Close()
	listener, err := serve.Loopback(ctx, cmp.Or(addr, usual))
	if err != nil {
		return err
	}
	defer listener.Close()
	server := serve.Engine(engine)
	signals := process.CatchSignals()
	defer signals.Release()
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer server.Close()

	url := "http://" + listener.Addr().String()
	variables := key.Variables(c.Settings.Getenv, url)
	if len(command) > 0 {
		return runLocal(&exec.Cmd{
			Path: path, Args: command, Stdin: c.Stdin, Stdout: c.Env.Stdout, Stderr: c.Env.Stderr, Env: append(key.Without(c.Environ), variables...),
		}, signals)
	}
	asJSON := map[string]string{"endpointUrl": url}
	if key.Made {
		asJSON["accessKeyId"], asJSON["secretAccessKey"] = key.ID, key.Secret
	}
	err = c.SayURL(url, asJSON, "serving the DynamoDB API on %s, tables are %s; press Ctrl-C to stop\n", url, where)
	if err == nil && key.Made && !c.JSON {
		_, err = fmt.Fprintf(c.Stdout, "export %s\n", strings.Join(variables, " "))
	}
	if err != nil {
		return err
	}
	ctx, cancel := signals.Bind(ctx)
	defer cancel()
	return serve.Wait(ctx, served)
}

// runLocal runs CMD, forwards signals to CMD, and waits until CMD exits. If CMD's exit code is not
// 0, runLocal returns an error with this code.
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
