package arguments

import (
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// Owner returns the name shown to other users, empty for the default. run sets
// LEASEHOLD_OWNER to a name that ends in the client id of its grant. Owner cuts that off,
// as this client has its own id.
func Owner(settings *store.Settings) (string, error) {
	v, _, err := settings.Variable("LEASEHOLD_OWNER")
	owner := wording.OwnerWithoutID(v)
	if err == nil && len(owner) > protocol.LongestOwner {
		err = misuse.Errorf("LEASEHOLD_OWNER has %s: at most %d", wording.Count(len(owner), "byte", "bytes"), protocol.LongestOwner)
	}
	return owner, err
}

// Breaker returns the name of the operator who breaks a grant, for the grant's record:
// LEASEHOLD_OWNER or, without it, the user of this machine.
func Breaker(settings *store.Settings) leasehold.Config {
	owner, err := Owner(settings)
	if err == nil && owner == "" {
		host, unnamed := os.Hostname()
		if unnamed != nil {
			host = "unknown"
		}
		owner = store.UserName() + "@" + host
	}
	return leasehold.Config{Owner: owner}
}

// Lease returns the lease. flag contains the default if the flag was not given.
func Lease(flag time.Duration, given bool, settings *store.Settings) (time.Duration, error) {
	if given {
		return flag, nil
	}
	v, set, err := settings.Variable("LEASEHOLD_LEASE")
	if !set || err != nil {
		return flag, err
	}
	d, err := wording.ParseDuration(v)
	if err != nil {
		return 0, misuse.Errorf("LEASEHOLD_LEASE %s: %v", visible.Name(v), err)
	}
	return d, nil
}

// RefuseShortLease refuses a lease that leaves too little time to trust it in a layout that
// allows for differing clocks.
func RefuseShortLease(cmd *cobra.Command, length time.Duration, settings *store.Settings) error {
	l, proto, err := settings.Protocol()
	if err != nil {
		return err
	}
	skew := proto.Skew()
	least := lease.Shortest(skew)
	switch {
	case length >= least:
		return nil
	case skew == 0:
		return misuse.Of(cmd, "a lease of %s is too short: use at least %s", wording.Duration(length), wording.Duration(least))
	}
	instead := ""
	if by := settings.MaxSkewBy(); by != "" {
		instead = ", or a shorter " + by
	}
	return misuse.Of(cmd, "a lease of %s is too short: layout %s allows for clocks that differ by %s: use at least %s for --lease%s",
		wording.Duration(length), l.Name(), wording.Duration(skew), wording.Duration(least), instead)
}

// StoreArgs returns the given flags that choose the store and its layout.
func StoreArgs(cmd *cobra.Command) []string {
	var args []string
	for _, name := range []string{"table", "file", "layout", "attr", "region", "profile", "endpoint-url", "max-skew"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			args = append(args, "--"+name, f.Value.String())
		}
	}
	return args
}

// StoreFlags returns StoreArgs as words of a shell, for commands in messages.
func StoreFlags(cmd *cobra.Command) string {
	var words strings.Builder
	for _, arg := range StoreArgs(cmd) {
		words.WriteString(" " + wording.ShellWord(arg))
	}
	return words.String()
}
