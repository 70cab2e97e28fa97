package setup

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/demo"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/durations"
)

// demoLease is the default lease in the demo. It is short because the demo waits until
// leases expire.
const demoLease = 2 * time.Second

// Demo returns the command "leasehold demo".
func (c *Commands) Demo() *cobra.Command {
	length := arguments.Duration{Duration: demoLease, Min: time.Second}
	cmd := &cobra.Command{
		Use:   "demo [flags]",
		Short: "Watch a lock change hands on this machine",
		Args:  arguments.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runtime.GOOS == "windows" {
				return failure.Misusef("the demo does not run on Windows, which cannot stop and continue a process")
			}
			return c.demo(cmd, length)
		},
	}
	cmd.Flags().VarP(&length, "lease", "l", "lease `DURATION`")
	return cmd
}

// demo runs the demo in the store that the flags choose. If they choose none, it runs the
// demo in a temporary local store.
func (c *Commands) demo(cmd *cobra.Command, length arguments.Duration) error {
	r, err := c.Settings.Records()
	if err != nil {
		return err
	}
	d := &demo.Demo{Lease: length.Duration, Out: c.Stdout, JSON: c.JSON}
	if !length.Given { // in a layout that relies on clocks, the allowed clock skew shortens the trust in a lease, so lengthen the lease by the skew
		d.Lease = durations.Sum(d.Lease, r.Proto.Skew())
	}
	self, err := c.Executable()
	if err != nil {
		return err
	}
	d.Leasehold = exec.Cmd{Path: self, Args: arguments.StoreArgs(cmd), Env: c.Environ}
	if f := &c.Settings; f.File != "" {
		err = c.MakeFile(f.File)
	} else if f.Table == "" && f.AWSFlag() == "" {
		dir, failed := os.MkdirTemp("", "leasehold-demo-")
		if failed != nil {
			return failed
		}
		defer os.RemoveAll(dir)
		f.File = filepath.Join(dir, store.DefaultFile)
		d.Leasehold.Args = append(d.Leasehold.Args, "--file", f.File)
		_, err = f.MakeFile(f.File)
	}
	if err != nil {
		return err
	}
	return c.OnStore(cmd, store.Opening{}, func(ctx context.Context, s *store.Store) error {
		d.Store = s
		return d.Play(ctx)
	})
}
