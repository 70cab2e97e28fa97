package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/grants"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
)

func (a *app) newRenew() *cobra.Command {
	var path string
	var lease time.Duration
	var data dataFlag
	cmd := &cobra.Command{
		Use:   "renew [flags]",
		Short: "Renew a grant made by acquire",
		Long: `Renew the grant read from FILE or standard input, and write the new one back.
After that the old grant can be released, but no longer renewed.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			data.given = cmd.Flags().Changed("data")
			var opts []leasehold.RenewOption
			if lease != 0 {
				opts = append(opts, leasehold.WithLease(lease))
			}
			changed, err := data.option(a.Stdin)
			if err != nil {
				return err
			}
			if changed != nil {
				opts = append(opts, changed)
			}
			file, err := a.readGrant(cmd, path)
			if err != nil {
				return err
			}
			if err := a.requireStdout(path); err != nil {
				return err
			}
			if err := file.CheckWritable(); err != nil {
				return err
			}
			return failure.Answer(a.inStoreOf(cmd, file.Grant, data, func(ctx context.Context, locks *leasehold.Client, here grants.Place) error {
				lock, err := file.Grant.Resume(ctx, locks, here, opts...)
				if err != nil {
					return err
				}
				grant, err := lock.Detach()
				if err != nil {
					return err
				}
				if err := file.Write(a.Stdout, grants.Grant{Grant: grant, At: here}); err != nil {
					return misuse.Errorf("%s is renewed until %s, but the new grant could not be written to %s: %v; leasehold release still accepts the old one",
						wording.Key(grant.Key), grant.TrustedUntil.Local().Format(time.DateTime), file.Name(), failure.WithoutPath(err))
				}
				return nil
			}))
		},
	}
	fl := cmd.Flags()
	grantFlag(fl, &path, "read the grant from `FILE`, and write the new one to it")
	fl.VarP(durationFlag{d: &lease, min: time.Second}, "lease", "l", "new lease `DURATION` (default: as before)")
	fl.StringVar(&data.text, "data", "", dataUsage)
	return cmd
}
