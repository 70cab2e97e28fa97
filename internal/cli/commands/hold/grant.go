package hold

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/grants"
	"github.com/leasehold-go/leasehold/internal/cli/holding"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// grantFlags contains the values of the flags of "leasehold renew" and "leasehold release".
type grantFlags struct {
	path string
	data arguments.Data
}

// read reads the grant from a file or standard input, and returns the layout of the records. It
// also returns the option for --data, or nil if --data was not given. The commands renew and
// release call it before they open the store.
func (c *Commands) read(cmd *cobra.Command, f *grantFlags) (file *grants.File, data leasehold.RecordOption, r store.Records, err error) {
	if data, err = f.data.Option(c.Stdin); err != nil {
		return nil, nil, r, err
	}
	if f.path == grants.Standard && say.IsTerminal(c.Stdin) {
		return nil, nil, r, failure.MisuseOf(cmd, "name the FILE with the grant: -f FILE")
	}
	if file, err = grants.Read(f.path, c.Stdin); err != nil {
		return nil, nil, r, err
	}
	r, err = c.Settings.Records()
	return file, data, r, err
}

// inStoreOf opens the store of g, and calls fn with a lock client and the store's Place. A signal
// cancels fn's context. If the layout cannot store --data, inStoreOf returns an error without
// calling fn, because renew can resume a grant only once from one file.
func (c *Commands) inStoreOf(cmd *cobra.Command, g grants.Grant, data leasehold.RecordOption, fn func(context.Context, *leasehold.Client, grants.Place) error) error {
	if err := g.UseStore(&c.Settings); err != nil {
		return err
	}
	return c.OnStore(cmd, store.Opening{Granted: g.Table}, func(ctx context.Context, s *store.Store) error {
		if s.Table != g.Table {
			return failure.Misusef("the grant is from table %s, not %s", g.Table, s.Table)
		}
		here := grants.PlaceOf(ctx, s)
		if err := g.RefuseOther(here, c.Settings.Endpoint); err != nil {
			return err
		}
		if data != nil && !s.Layout.Capabilities().Data {
			return &leasehold.UnsupportedError{Layout: s.Layout.Name(), Feature: "data"}
		}
		t, err := s.WithLocks(leasehold.Config{Owner: wording.OwnerWithoutID(g.Owner)})
		if err != nil {
			return err
		}
		return fn(ctx, t.Locks, here)
	})
}

// Renew returns the command "leasehold renew".
func (c *Commands) Renew() *cobra.Command {
	var f grantFlags
	length := arguments.Duration{Min: time.Second}
	cmd := &cobra.Command{
		Use:   "renew [flags]",
		Short: "Renew a grant made by acquire",
		Args:  arguments.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, data, r, err := c.read(cmd, &f)
			if err != nil {
				return err
			}
			var opts []leasehold.RenewOption
			if length.Duration != 0 {
				opts = append(opts, leasehold.WithLease(length.Duration))
			}
			if data != nil {
				opts = append(opts, data)
			}
			if next := cmp.Or(length.Duration, file.Grant.Lease); next != 0 { // a zero lease means that the grant is damaged; Resume returns the error
				if err := r.RefuseShortLease(cmd, next); err != nil {
					return err
				}
			}
			if err := file.CheckWritable(c.Stdout); err != nil {
				return err
			}
			return failure.Answer(c.inStoreOf(cmd, file.Grant, data, func(ctx context.Context, locks *leasehold.Client, here grants.Place) error {
				lock, err := file.Grant.Resume(ctx, locks, here, opts...)
				if ctx.Err() != nil && errors.Is(err, leasehold.ErrUnknownOutcome) {
					// A signal arrived during the renewal, so its outcome is unknown. If it was
					// applied, the file's grant is outdated, and a later "leasehold renew" cannot
					// resume it. This client can, because it knows the version that it wrote.
					limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), holding.ReleaseLimit)
					defer cancel()
					if resumed, unknown := file.Grant.Resume(limited, locks, here, opts...); unknown == nil {
						lock, err = resumed, nil
					}
				}
				if err != nil {
					return err
				}
				grant, err := lock.Detach()
				if err != nil {
					return err
				}
				if err := file.Write(c.Stdout, grants.Grant{Grant: grant, At: here}); err != nil {
					return failure.Misusef("%s is renewed until %s, but the new grant could not be written to %s: %v; leasehold release still accepts the old one",
						grant.Key.String(), grant.TrustedUntil.Local().Format(time.DateTime), file.Name(), failure.WithoutPath(err))
				}
				return context.Cause(ctx) // *failure.SignalError if a signal arrived, otherwise nil
			}))
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.path, "grant", "f", grants.Standard, "read the grant from `FILE`, and write the new one to it")
	fl.VarP(&length, "lease", "l", "new lease `DURATION` (default: as before)")
	f.data.Flag(fl)
	return cmd
}

// Release returns the command "leasehold release".
func (c *Commands) Release() *cobra.Command {
	var f grantFlags
	cmd := &cobra.Command{
		Use:   "release [flags]",
		Short: "Release a grant made by acquire",
		Args:  arguments.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, data, r, err := c.read(cmd, &f)
			if err != nil {
				return err
			}
			var opts []leasehold.ReleaseOption
			if data != nil {
				opts = append(opts, data)
			}
			err = c.inStoreOf(cmd, file.Grant, data, func(ctx context.Context, locks *leasehold.Client, here grants.Place) error {
				lock, err := file.Grant.ResumeToRelease(ctx, locks, here, r.ShortestLease())
				if err != nil {
					return err
				}
				return lock.Release(ctx, opts...)
			})
			if grants.Ended(err) {
				err = errors.Join(err, file.Remove())
			}
			return failure.Answer(err)
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.path, "grant", "f", grants.Standard, "read the grant from `FILE`")
	f.data.Flag(fl)
	return cmd
}

// Acquire returns the command "leasehold acquire".
func (c *Commands) Acquire() *cobra.Command {
	f := wantedFlags{Wanted: holding.Wanted{Detached: true}, lease: arguments.Lasting(protocol.DefaultLease)}
	var path string
	cmd := &cobra.Command{
		Use:               "acquire KEY [flags]",
		Short:             "Acquire KEY and leave it held, for scripts",
		ValidArgsFunction: c.AnyKey,
		Args:              arguments.OneKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.computeWanted(cmd, &f); err != nil {
				return err
			}
			to, err := grants.Open(path, c.Stdout)
			if err != nil {
				return err
			}
			f.Keys = args
			return c.seeking(cmd, &f, func(s *store.Store, seeker *holding.Seeker) error {
				ctx, done := seeker.Bind(cmd.Context(), f.Wait)
				here := grants.PlaceOf(ctx, s)
				done()
				if err := to.RefuseHeld(c.Now(), s.Table, s.Key(args[0], f.SortKey), here); err != nil {
					return err
				}
				return failure.Answer(c.acquire(cmd.Context(), s, seeker, to, here))
			})
		},
	}
	fl := cmd.Flags()
	waitFlags(fl, &f)
	recordFlags(fl, &f)
	fl.StringVarP(&path, "grant", "f", grants.Standard, "write the grant to `FILE`, mode 0600")
	return cmd
}

func (c *Commands) acquire(ctx context.Context, s *store.Store, seeker *holding.Seeker, to *grants.File, here grants.Place) error {
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
	if kept := h.TakeBack(ctx, grant); kept != nil {
		return failure.Misusef("cannot write the grant to %s: %v; %s could not be released either, and will be free when the lease expires: %s",
			to.Name(), failure.WithoutPath(err), grant.Key.String(), failure.Text(kept, s.Where()))
	}
	return failure.Misusef("cannot write the grant to %s: %v; %s was released again", to.Name(), failure.WithoutPath(err), grant.Key.String())
}
