package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/grants"
	"github.com/leasehold-go/leasehold/internal/cli/holding"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
)

func (a *app) newAcquire() *cobra.Command {
	f := wantedFlags{Wanted: holding.Wanted{Lease: defaultLease, Detached: true}}
	var path string
	cmd := &cobra.Command{
		Use:   "acquire KEY [flags]",
		Short: "Acquire KEY and leave it held, for scripts",
		Long: `Acquire KEY, print the grant as JSON and exit with KEY still held.

Nothing renews the lease: run leasehold renew before it expires, and leasehold
release when the work is done. If one command does the work, prefer leasehold
run.

FILE is a regular file, or - for standard output. It is written if it is
missing, empty or holds a grant that has ended; any other file is refused. A
symbolic link is followed. If the grant cannot be written, KEY is released
again.`,
		Example: `  leasehold acquire deploy/prod -l 10m -f grant.json
  leasehold renew -f grant.json
  leasehold release -f grant.json`,
		ValidArgsFunction: a.completeKeys(anyRecord),
		Args:              oneKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			l, _, err := a.completeWanted(cmd, &f)
			if err != nil {
				return err
			}
			wanted, err := a.flags.Place("")
			if err != nil {
				return err
			}
			lockKey := store.CompleteKey(l, leasehold.Key{Partition: args[0], Sort: f.SortKey})
			if err := a.requireStdout(path); err != nil {
				return err
			}
			to, err := grants.Open(path, a.Now(), wanted, lockKey)
			if err != nil {
				return err
			}
			s, err := a.open(cmd, store.Opening{Make: true})
			if err != nil {
				return err
			}
			defer s.Close()
			here := grants.PlaceOf(cmd.Context(), s)
			if err := to.MayBeReplacedIn(a.Now(), here); err != nil {
				return err
			}
			f.Keys = args
			return failure.Answer(a.acquire(cmd.Context(), s, &f, to, here))
		},
	}
	fl := cmd.Flags()
	waitFlags(fl, &f)
	recordFlags(fl, &f)
	grantFlag(fl, &path, "write the grant to `FILE`, mode 0600")
	return cmd
}

func (a *app) acquire(ctx context.Context, s *store.Store, f *wantedFlags, to *grants.File, here grants.Place) error {
	seeker, err := a.seek(s, f)
	if err != nil {
		return err
	}
	defer seeker.Close()
	h, err := seeker.Acquire(ctx)
	if err != nil {
		return err
	}
	grant, err := h.Detach()
	if err != nil {
		return err
	}
	err = to.Write(a.Stdout, grants.Grant{Grant: grant, At: here})
	if err == nil {
		return nil
	}
	k := wording.Key(grant.Key)
	if kept := h.TakeBack(ctx, grant); kept != nil {
		return misuse.Errorf("cannot write the grant to %s: %v; %s could not be released either, and becomes free when its lease expires: %s",
			to.Name(), failure.WithoutPath(err), k, failure.Text(kept, s.Where()))
	}
	return misuse.Errorf("cannot write the grant to %s: %v; %s was released again", to.Name(), failure.WithoutPath(err), k)
}
