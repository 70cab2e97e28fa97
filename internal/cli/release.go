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
		Long: `Release the grant read from FILE or standard input, and remove FILE.
A grant from before a renewal does as well: the output of that may be lost.`,
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
			g, err := a.grantOfFile(cmd, path)
			if err != nil {
				return err
			}
			err = a.release(cmd, g, opts)
			// A grant that is lost is of no more use than one released.
			var renewed *renewedError
			if err == nil || errors.Is(err, leasehold.ErrLost) && !errors.As(err, &renewed) {
				err = errors.Join(err, removeGrant(path, g.ID))
			}
			return no(err)
		},
	}
	fl := cmd.Flags()
	grantFlag(fl, &path, "`FILE` with the grant")
	fl.StringVar(&data.text, "data", "", "`TEXT` to keep in the record; @FILE reads a file")
	return cmd
}

func (a *app) release(cmd *cobra.Command, g placedGrant, opts []leasehold.ReleaseOption) error {
	r, err := a.resume(cmd, g, true, len(opts) > 0)
	if err != nil {
		return err
	}
	defer r.close()
	return r.lock.Release(r.ctx, opts...)
}
