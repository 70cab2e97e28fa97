package setup

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/demo"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/invocation"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/process"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// demoLease is short, to keep the demo short.
const demoLease = 2 * time.Second

// Demo is leasehold demo.
func Demo(in *invocation.Invocation) *cobra.Command {
	c := &command{in}
	d := &demo.Demo{Lease: demoLease}
	cmd := &cobra.Command{
		Use:   "demo [flags]",
		Short: "Watch a lock change hands on this machine",
		Long: `Watch processes compete for one lock. One of them is killed with kill -9, and
one is stopped past its lease and then continued. Shows who holds the lock, with
which token, and how the late write of the stopped process is refused. Takes
about 8 seconds and needs no AWS.`,
		Example: `  leasehold demo
  leasehold demo --table locks      # the same on your table`,
		Args: arguments.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if d.Clients < demo.MinClients || d.Clients > demo.MaxClients {
				return misuse.Of(cmd, "-c %d: use %d to %d", d.Clients, demo.MinClients, demo.MaxClients)
			}
			if runtime.GOOS == "windows" {
				return misuse.Errorf("the demo does not run on Windows, which cannot stop and continue a process")
			}
			return c.demo(cmd, d)
		},
	}
	cmd.Flags().IntVarP(&d.Clients, "clients", "c", demo.MinClients, "run `N` processes")
	cmd.Flags().VarP(arguments.Duration{D: &d.Lease, Min: time.Second}, "lease", "l", "lease `DURATION`")
	return cmd
}

// demo plays on the table that flags name or, if none does, on a store of its own.
func (c *command) demo(cmd *cobra.Command, d *demo.Demo) error {
	_, proto, err := c.Settings.Protocol()
	if err != nil {
		return err
	}
	if !cmd.Flags().Changed("lease") { // the skew that the layout allows for shortens trust
		d.Lease += proto.Skew()
	}
	self, err := c.Executable()
	if err != nil {
		return err
	}
	d.Process = exec.Cmd{Path: self, Args: arguments.StoreArgs(cmd), Env: c.Environ, Stderr: c.Env.Stderr}
	d.Out, d.JSON = c.Stdout, c.JSON
	if f := &c.Settings; f.File != "" {
		err = c.MakeFile(f.File)
	} else if f.Table == "" && f.AWSFlag() == "" {
		dir, failed := os.MkdirTemp("", "leasehold-demo-")
		if failed != nil {
			return failed
		}
		defer os.RemoveAll(dir)
		file := filepath.Join(dir, store.DefaultFile)
		d.Process.Args = append(d.Process.Args, "--file", file)
		_, err = c.Settings.MakeFile(file)
	}
	if err != nil {
		return err
	}
	ctx, done := process.UntilSignal(cmd.Context())
	defer done()
	return d.Run(ctx)
}

// DemoProcess is the hidden command that the demo starts.
func DemoProcess(in *invocation.Invocation) *cobra.Command {
	c := &command{in}
	lease := protocol.DefaultLease
	cmd := &cobra.Command{
		Use: demo.Command + " NAME KEY", Hidden: true, Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			p := &demo.Process{Name: args[0], Key: args[1], Lease: lease, Out: c.Stdout}
			s, err := c.Open(cmd, store.Opening{})
			if err == nil {
				defer s.Close()
				err = p.Run(cmd.Context(), s, c.Stdin)
			}
			if err != nil {
				p.Fail(failure.Text(err, "table "+c.Settings.Table))
				return failure.Exit(failure.CodeTrouble, nil)
			}
			return nil
		},
	}
	cmd.Flags().Var(arguments.Duration{D: &lease}, "lease", "lease")
	return cmd
}
