package invocation

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/store"
)

// These limit the completion of a key, which reads the table while the user waits at the
// prompt.
const (
	completionTime = time.Second
	completionKeys = 200
)

// AnyKey completes the first argument to a key of the table. It leaves the later arguments,
// such as CMD, to the shell.
func (in *Invocation) AnyKey(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return in.key(cmd, args, toComplete, func(leasehold.Record) bool { return true })
}

// HeldKey is AnyKey for held keys only.
func (in *Invocation) HeldKey(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return in.key(cmd, args, toComplete, func(r leasehold.Record) bool { return !r.Released })
}

func (in *Invocation) key(cmd *cobra.Command, args []string, toComplete string, wanted func(leasehold.Record) bool) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return in.keysFor(cmd, toComplete, wanted), cobra.ShellCompDirectiveNoFileComp
}

// keysFor returns the keys of the table that begin with prefix: as many as can be read in
// time, none if anything fails. It writes no message, and does not create a store.
func (in *Invocation) keysFor(cmd *cobra.Command, prefix string, wanted func(leasehold.Record) bool) []cobra.Completion {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	cmd.SetContext(ctx)
	in.Say, in.completing = say.NewMessages(say.To(io.Discard, false)), true
	s, err := in.Open(cmd, store.Opening{})
	if err != nil {
		return nil
	}
	defer s.Close()
	t, err := s.WithLocks(leasehold.Config{})
	if err != nil {
		return nil
	}
	var opts []leasehold.ListOption
	if prefix != "" {
		opts = append(opts, leasehold.ListPrefix(prefix))
	}
	seen := map[string]bool{}
	var keys []cobra.Completion
	for r, err := range t.Locks.List(ctx, opts...) {
		key := r.Key.Partition
		if ctx.Err() != nil || len(keys) == completionKeys {
			break
		}
		if err == nil && wanted(r) && !seen[key] {
			seen[key] = true
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
