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
	"github.com/leasehold-go/leasehold/internal/cli/invocation"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
)

// Renew is leasehold renew.
func Renew(in *invocation.Invocation) *cobra.Command {
	c := &command{in}
	var path string
	var lease time.Duration
	var data arguments.Data
	cmd := &cobra.Command{
		Use:   "renew [flags]",
		Short: "Renew a grant made by acquire",
		Long: `Renew the grant read from FILE or standard input, and write the new one back.
After that the old grant can be released, but no longer renewed.`,
		Args: arguments.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var opts []leasehold.RenewOption
			if lease != 0 {
				opts = append(opts, leasehold.WithLease(lease))
			}
			changed, err := data.Option(c.Stdin)
			if err != nil {
				return err
			}
			if changed != nil {
				opts = append(opts, changed)
			}
			file, err := c.readGrant(cmd, path)
			if err != nil {
				return err
			}
			if length := cmp.Or(lease, file.Grant.Lease); length != 0 { // else the grant is damaged, and Resume says so
				if err := arguments.RefuseShortLease(cmd, length, &c.Settings); err != nil {
					return err
				}
			}
			if err := c.requireStdout(path); err != nil {
				return err
			}
			if err := file.CheckWritable(); err != nil {
				return err
			}
			return failure.Answer(c.inStoreOf(cmd, file.Grant, data, func(ctx context.Context, locks *leasehold.Client, here grants.Place) error {
				lock, err := file.Grant.Resume(ctx, locks, here, opts...)
				if ctx.Err() != nil && errors.Is(err, leasehold.ErrUnknownOutcome) {
					// A signal came while a request was under way. If that is applied, the old
					// grant cannot be renewed any more, so there must be a new one.
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
					return misuse.Errorf("%s is renewed until %s, but the new grant could not be written to %s: %v; leasehold release still accepts the old one",
						wording.Key(grant.Key), grant.TrustedUntil.Local().Format(time.DateTime), file.Name(), failure.WithoutPath(err))
				}
				return context.Cause(ctx) // nil, or the signal
			}))
		},
	}
	fl := cmd.Flags()
	grantFlag(fl, &path, "read the grant from `FILE`, and write the new one to it")
	fl.VarP(arguments.Duration{D: &lease, Min: time.Second}, "lease", "l", "new lease `DURATION` (default: as before)")
	data.Flag(fl)
	return cmd
}
