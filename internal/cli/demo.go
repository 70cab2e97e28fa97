package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold/internal/cli/demo"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/process"
	"github.com/leasehold-go/leasehold/internal/cli/store"
)

// demoLease is short, to keep the demo short.
const demoLease = 2 * time.Second

func (a *app) newDemo() *cobra.Command {
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
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if d.Clients < demo.MinClients || d.Clients > demo.MaxClients {
				return usageOf(cmd, "-c %d: use %d to %d", d.Clients, demo.MinClients, demo.MaxClients)
			}
			if runtime.GOOS == "windows" {
				return misuse.Errorf("the demo does not run on Windows, which cannot stop and continue a process")
			}
			return a.demo(cmd, d)
		},
	}
	cmd.Flags().IntVarP(&d.Clients, "clients", "c", demo.MinClients, "run `N` processes")
	cmd.Flags().VarP(durationFlag{d: &d.Lease, min: time.Second}, "lease", "l", "lease `DURATION`")
	return cmd
}

// demo plays on the table that flags name or, if none does, on a store of its own.
func (a *app) demo(cmd *cobra.Command, d *demo.Demo) error {
	_, proto, err := a.chooseProtocol(cmd)
	if err != nil {
		return err
	}
	if !cmd.Flags().Changed("lease") { // the skew that the layout allows for shortens trust
		d.Lease += proto.Skew()
	}
	self, err := a.Executable()
	if err != nil {
		return err
	}
	d.Process = exec.Cmd{Path: self, Args: storeArgs(cmd), Env: a.Environ, Stderr: a.Env.Stderr}
	d.Out, d.JSON = a.Stdout, a.flags.json
	if f := a.flags; f.File != "" {
		err = a.makeNamed(f.File)
	} else if f.Table == "" && f.AWSFlag() == "" {
		dir, failed := os.MkdirTemp("", "leasehold-demo-")
		if failed != nil {
			return failed
		}
		defer os.RemoveAll(dir)
		file := filepath.Join(dir, store.DefaultFile)
		d.Process.Args = append(d.Process.Args, "--file", file)
		_, err = a.flags.MakeFile(file)
	}
	if err != nil {
		return err
	}
	ctx, done := process.UntilSignal(cmd.Context())
	defer done()
	return d.Run(ctx)
}

// newDemoProcess is the hidden command that the demo starts.
func (a *app) newDemoProcess() *cobra.Command {
	lease := defaultLease
	cmd := &cobra.Command{
		Use: demo.Command + " NAME KEY", Hidden: true, Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			p := &demo.Process{Name: args[0], Key: args[1], Lease: lease, Out: a.Stdout}
			s, err := a.open(cmd, store.Opening{})
			if err == nil {
				defer s.Close()
				err = p.Run(cmd.Context(), s, a.Stdin)
			}
			if err != nil {
				p.Fail(failure.Text(err, "table "+a.flags.Table))
				return failure.Exit(failure.CodeTrouble, nil)
			}
			return nil
		},
	}
	cmd.Flags().Var(durationFlag{d: &lease}, "lease", "lease")
	return cmd
}
