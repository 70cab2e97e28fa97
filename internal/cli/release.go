package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
)

func (a *app) newRelease() *cobra.Command {
	var path string
	var data dataFlag
	cmd := &cobra.Command{
		Use:   "release [flags]",
		Short: "Release a grant of acquire",
		Long:  "Release the grant read from FILE or standard input, and remove FILE.",
		Args:  noArgs,
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
			err = a.release(cmd, path, opts)
			// A grant that is lost is of no more use than one released.
			if err == nil || errors.Is(err, leasehold.ErrLost) {
				err = errors.Join(err, removeGrant(path))
			}
			return no(err)
		},
	}
	fl := cmd.Flags()
	grantFlag(fl, &path, "`FILE` with the grant")
	fl.StringVar(&data.text, "data", "", "`TEXT` to keep in the record; @FILE reads a file")
	return cmd
}

func (a *app) release(cmd *cobra.Command, path string, opts []leasehold.ReleaseOption) error {
	r, err := a.resume(cmd, path, len(opts) > 0)
	if err != nil {
		return err
	}
	defer r.close()
	return r.lock.Release(cmd.Context(), opts...)
}
