package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
)

func (a *app) newAcquire() *cobra.Command {
	f := acquireFlags{lease: defaultLease}
	var path string
	cmd := &cobra.Command{
		Use:   "acquire KEY [flags]",
		Short: "Acquire KEY and leave it held, for scripts",
		Long: `Acquire KEY, print the grant as JSON and exit, with KEY held.

Nothing renews it: run leasehold renew before the lease ends, then release.
Prefer leasehold run where one command does the work.`,
		Example: `  leasehold acquire deploy/prod -l 10m -f grant.json
  leasehold renew -f grant.json
  leasehold release -f grant.json`,
		Args: oneKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.completeAcquire(cmd, &f); err != nil {
				return err
			}
			s, err := a.open(cmd, "")
			if err != nil {
				return err
			}
			defer s.close()
			if err := a.refuseNested(s, args[0], f.sortKey); err != nil {
				return err
			}
			return no(a.acquire(cmd.Context(), s, args[0], &f, path))
		},
	}
	fl := cmd.Flags()
	fl.BoolVarP(&f.nonblock, "nonblock", "n", false, "do not wait if KEY is held")
	fl.VarP(durationFlag{d: &f.wait}, "wait", "w", "wait at most `DURATION` (default: for ever)")
	fl.VarP(durationFlag{d: &f.lease}, "lease", "l", "a dead holder blocks KEY for `DURATION`")
	fl.StringVar(&f.sortKey, "sort-key", "", "sort key `VALUE`, in a table that has one")
	fl.StringVar(&f.data.text, "data", "", "`TEXT` to keep in the record; @FILE reads a file")
	grantFlag(fl, &path, "write the grant to `FILE`, mode 0600")
	return cmd
}

func (a *app) acquire(ctx context.Context, s *store, key string, f *acquireFlags, path string) error {
	signals := catchSignals()
	defer signals.release()
	g, err := a.acquireFor(ctx, s, key, f, signals, func(leasehold.Event) {}, leasehold.WithoutRenewal())
	if err != nil {
		return err
	}
	defer closeLocks(g.locks)
	grant, err := g.lock.Detach()
	if err != nil {
		return err
	}
	err = a.writeGrant(path, grant)
	if err == nil {
		return nil
	}
	// Nobody knows the grant, so nobody could release it.
	if lock, resumed := g.locks.Resume(ctx, grant); resumed == nil {
		_ = lock.Release(ctx) // the error of the file is what matters, and the lease frees the key
	}
	return err
}
