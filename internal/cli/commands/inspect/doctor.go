package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/checks"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/process"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

const (
	doctorTime   = time.Minute // limit for all checks together
	doctorPrefix = "leasehold-doctor/"
)

// Doctor returns the command "leasehold doctor".
func (c *Commands) Doctor() *cobra.Command {
	lease, prefix := arguments.Lasting(protocol.DefaultLease), ""
	cmd := &cobra.Command{
		Use:   "doctor [flags]",
		Short: "Check everything that locks here depend on",
		Args:  arguments.None,
		RunE:  func(cmd *cobra.Command, _ []string) error { return c.doctor(cmd, lease, prefix) },
	}
	fl := cmd.Flags()
	fl.VarP(&lease, "lease", "l", "compare the round trip with a lease of `DURATION`")
	fl.StringVar(&prefix, "prefix", "", "write to a key that begins with `PREFIX`, if the caller may use no others")
	return cmd
}

func (c *Commands) doctor(cmd *cobra.Command, lease arguments.Duration, prefix string) error {
	c.PlaceShown = true
	length, err := c.Settings.Lease(lease)
	if err != nil {
		return err
	}
	records, err := c.Settings.Records()
	if err == nil {
		err = records.RefuseShortLease(cmd, length)
	}
	if err != nil {
		return err
	}
	p, err := c.Settings.Place("")
	if err != nil {
		return err
	}
	ctx, done := process.UntilSignal(cmd.Context())
	defer done()
	ctx, cancel := context.WithTimeoutCause(ctx, doctorTime, fmt.Errorf("not done after %s", wording.Age(doctorTime)))
	defer cancel()
	cmd.SetContext(ctx) // so that a signal also ends the wait for a store whose file is locked
	r := &checks.Report{Say: c.Say, Out: c.Stdout, JSON: c.JSON}
	if err := c.examine(ctx, cmd, r, p, length, prefix); err != nil && failure.Interrupted(context.Cause(ctx)) == nil {
		return err
	}
	return r.Verdict(ctx)
}

// examine runs all checks of doctor and prints their findings. It returns an error only for
// a mistake in the command line or the environment. Any other failure becomes a finding.
func (c *Commands) examine(ctx context.Context, cmd *cobra.Command, r *checks.Report, p store.Place, length time.Duration, prefix string) error {
	if p.File != "" {
		r.Found(ctx, checks.Disk(p.File, c.FileSystem))
	}
	s, err := c.Open(cmd, store.Opening{AnyLayout: true})
	switch {
	case err != nil && p.File == "":
		return err
	case err != nil:
		r.Where = p.Table + " in " + p.File
		r.Found(ctx, checks.Finding{Check: "store", State: checks.Fatal, Err: err, Failed: true})
		return nil
	}
	defer s.Close()
	t, err := checks.New(s, length, prefix+doctorPrefix)
	if err != nil {
		return err
	}
	r.Where = s.Where()
	with, err := s.WithLocks(leasehold.Config{Lease: length})
	if err != nil {
		return err
	}
	r.Found(ctx, c.where(s))
	r.Run(ctx, append(t.Settings(), t.Locking(with.Locks)...))
	return nil
}

// where returns the finding that names the store, and the flag or variable that chose it.
func (c *Commands) where(s *store.Store) checks.Finding {
	named := func(flag, value, variable string) string {
		switch {
		case s.Unnamed:
			return "as no table and no file is named"
		case value != "":
			return "named by --" + flag
		}
		return "named by " + variable
	}
	f := checks.Finding{Check: "store", State: checks.OK, Values: map[string]any{"table": s.Table, "layout": s.Layout.Name()}}
	if s.File != "" {
		f.What = fmt.Sprintf("%s, table %s, %s: %s", s.File, s.Table, named("file", c.Settings.File, "LEASEHOLD_FILE"), s.Scope())
		f.Values["file"] = s.File
	} else {
		f.What = fmt.Sprintf("table %s in %s, %s", s.Table, s.Location, named("table", c.Settings.Table, "LEASEHOLD_TABLE"))
		f.Values["in"] = s.Location
	}
	return f
}
