package hold

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// severalFlags are the flags of run for more keys than one.
func severalFlags(fl *pflag.FlagSet, f *wantedFlags) {
	fl.StringArrayVarP(&f.more, "key", "k", nil, "hold `KEY` too; may be repeated")
	fl.BoolVar(&f.Any, "any", false, "hold only one of several keys: the first that is free")
	fl.BoolVar(&f.Shared, "shared", false, "renew one lease for all keys, by one request; break takes longer to reach CMD")
}

// name sets the keys that the user has named, each once.
func (f *wantedFlags) name(args []string) {
	f.Keys = nil
	for _, key := range slices.Concat(args, f.more) {
		if !slices.Contains(f.Keys, key) {
			f.Keys = append(f.Keys, key)
		}
	}
}

// checkSeveral refuses flags that do not go together.
func (c *command) checkSeveral(cmd *cobra.Command, f *wantedFlags) error {
	keys := f.Keys
	counted := cmd.Flags().Changed("permits")
	broken := slices.IndexFunc(keys, func(key string) bool { return strings.Contains(key, "\n") })
	switch {
	case slices.Contains(keys, ""):
		return misuse.Of(cmd, "KEY is empty")
	case broken >= 0 && len(keys) > 1 && !f.Any:
		return misuse.Of(cmd, "KEY %s has a line break, and CMD is told of several keys one a line: hold it alone", wording.Name(keys[broken]))
	case counted && f.Any:
		return misuse.Of(cmd, "-p and --any: use one of them")
	case counted && len(keys) > 1:
		return misuse.Of(cmd, "-p and several keys: use one of them")
	case f.Shared && (f.Any || len(keys) == 1):
		return misuse.Of(cmd, "--shared is for several keys (-k), whose lease it shares: leave it out")
	case !f.Shared:
		return nil
	}
	l, proto, err := c.Settings.Protocol()
	if err != nil {
		return err
	}
	if _, ok := proto.(protocol.Sharing); !ok {
		return misuse.Of(cmd, "--shared: layout %s has no shared leases: leave it out", l.Name())
	}
	return nil
}
