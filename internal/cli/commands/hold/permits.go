package hold

import (
	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold/internal/cli/holding"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// checkPermits checks the value of -p.
func checkPermits(cmd *cobra.Command, w *holding.Wanted) error {
	w.Counted = cmd.Flags().Changed("permits")
	switch {
	case w.Permits < 1 || w.Permits > protocol.MostPermits:
		return misuse.Of(cmd, "-p %d: use 1 to %d permits", w.Permits, protocol.MostPermits)
	case w.Permits > 1 && w.SortKey != "":
		return misuse.Of(cmd, "--sort-key and -p: use one of them: permits cannot have a sort key")
	}
	return nil
}
