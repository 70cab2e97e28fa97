package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/grants"
)

func (a *app) newRelease() *cobra.Command {
	var path string
	var data dataFlag
	cmd := &cobra.Command{
		Use:   "release [flags]",
		Short: "Release a grant made by acquire",
		Long: `Release the grant read from FILE or standard input, and remove FILE.
A grant from before a renewal is accepted too, in case the new one was lost.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			data.given = cmd.Flags().Changed("data")
			var opts []leasehold.ReleaseOption
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
			err = a.inStoreOf(cmd, file.Grant, data, func(ctx context.Context, locks *leasehold.Client, here grants.Place) error {
				lock, err := file.Grant.ResumeToRelease(ctx, locks, here)
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
	fl.StringVar(&data.text, "data", "", dataUsage)
	return cmd
}
