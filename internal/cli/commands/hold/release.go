package hold

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/grants"
	"github.com/leasehold-go/leasehold/internal/cli/invocation"
	"github.com/leasehold-go/leasehold/internal/lease"
)

// Release is leasehold release.
func Release(in *invocation.Invocation) *cobra.Command {
	c := &command{in}
	var path string
	var data arguments.Data
	cmd := &cobra.Command{
		Use:   "release [flags]",
		Short: "Release a grant made by acquire",
		Long: `Release the grant read from FILE or standard input, and remove FILE.
A grant from before a renewal is accepted too, in case the new one was lost.`,
		Args: arguments.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var opts []leasehold.ReleaseOption
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
			_, proto, err := c.Settings.Protocol()
			if err != nil {
				return err
			}
			err = c.inStoreOf(cmd, file.Grant, data, func(ctx context.Context, locks *leasehold.Client, here grants.Place) error {
				lock, err := file.Grant.ResumeToRelease(ctx, locks, here, lease.Shortest(proto.Skew()))
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
	grantFlag(fl, &path, "read the grant from `FILE`")
	data.Flag(fl)
	return cmd
}
