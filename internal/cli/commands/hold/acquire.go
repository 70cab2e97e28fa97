package hold

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/grants"
	"github.com/leasehold-go/leasehold/internal/cli/holding"
	"github.com/leasehold-go/leasehold/internal/cli/invocation"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Acquire is leasehold acquire.
func Acquire(in *invocation.Invocation) *cobra.Command {
	c := &command{in}
	f := wantedFlags{Wanted: holding.Wanted{Lease: protocol.DefaultLease, Detached: true}}
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
		ValidArgsFunction: c.AnyKey,
		Args:              arguments.OneKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			proto, err := c.completeWanted(cmd, &f)
			if err != nil {
				return err
			}
			wanted, err := c.Settings.Place("")
			if err != nil {
				return err
			}
			lockKey := store.KeyOf(proto, args[0], f.SortKey)
			if err := c.requireStdout(path); err != nil {
				return err
			}
			to, err := grants.Open(path, c.Now(), wanted, lockKey)
			if err != nil {
				return err
			}
			f.Keys = args
			return c.seeking(cmd, &f, func(s *store.Store, seeker *holding.Seeker) error {
				here := grants.PlaceOf(cmd.Context(), s)
				if err := to.MayBeReplacedIn(c.Now(), here); err != nil {
					return err
				}
				return failure.Answer(c.acquire(cmd.Context(), s, seeker, to, here))
			})
		},
	}
	fl := cmd.Flags()
	waitFlags(fl, &f)
	recordFlags(fl, &f)
	grantFlag(fl, &path, "write the grant to `FILE`, mode 0600")
	return cmd
}

func (c *command) acquire(ctx context.Context, s *store.Store, seeker *holding.Seeker, to *grants.File, here grants.Place) error {
	h, err := seeker.Acquire(ctx)
	if err != nil {
		return err
	}
	grant, err := h.Detach()
	if err != nil {
		return err
	}
	err = to.Write(c.Stdout, grants.Grant{Grant: grant, At: here})
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
