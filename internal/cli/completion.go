package cli

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/table"
)

// Bounds of the completion of a key, which reads the table while somebody waits at
// the prompt.
const (
	completionTime = time.Second
	completionKeys = 200
)

func (a *app) newCompletion() *cobra.Command {
	shells := map[string]func(root *cobra.Command, w io.Writer) error{
		"bash":       func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"zsh":        (*cobra.Command).GenZshCompletion,
		"fish":       func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
		"powershell": (*cobra.Command).GenPowerShellCompletionWithDesc,
	}
	names := []cobra.Completion{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion SHELL [flags]",
		Short: "Print a script that completes keys and flags in SHELL",
		Long: `Print a script that completes commands, flags, their values, and keys in SHELL:
bash, zsh, fish or powershell.

Keys are read from the table that flags and environment name, for a second at
most. If that fails, nothing is completed and nothing is said.`,
		Example: `  source <(leasehold completion bash)      # in this shell; or in ~/.bashrc
  leasehold completion zsh > "${fpath[1]}/_leasehold"
  leasehold completion fish > ~/.config/fish/completions/leasehold.fish
  leasehold completion powershell | Out-String | Invoke-Expression`,
		ValidArgs: names,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usageOf(cmd, "SHELL is missing: use %s", strings.Join(names, ", "))
			case len(args) > 1:
				return usageOf(cmd, "only one SHELL is allowed: remove %s", printable(args[1]))
			case shells[args[0]] == nil:
				return usageOf(cmd, "unknown SHELL %s: use %s", printable(args[0]), strings.Join(names, ", "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return shells[args[0]](cmd.Root(), a.Stdout) },
	}
}

// completeFlags sets what the values of cmd's flags, and of its subcommands' flags,
// complete to.
func completeFlags(cmd *cobra.Command) {
	values := map[string][]cobra.Completion{
		"layout":     layout.Names(),
		"attr":       {"key=", "sort=", "ttl="},
		"access":     {string(table.Use), string(table.Operate), string(table.Read)},
		"signal":     {"TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "ALRM", "KILL"},
		"background": backgroundModes,
	}
	for name, all := range values {
		if cmd.Flags().Lookup(name) == nil && cmd.PersistentFlags().Lookup(name) == nil {
			continue
		}
		directive := cobra.ShellCompDirectiveNoFileComp
		if name == "attr" {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(all, directive)) // it exists
	}
	for _, sub := range cmd.Commands() {
		completeFlags(sub)
	}
}

// completeKeys completes the first argument to the keys that are wanted. What
// follows it is left to the shell: CMD, or nothing.
func (a *app) completeKeys(wanted func(leasehold.Record) bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return a.keysFor(cmd, toComplete, wanted), cobra.ShellCompDirectiveNoFileComp
	}
}

// Which records' keys complete an argument.
func anyRecord(leasehold.Record) bool    { return true }
func heldRecord(r leasehold.Record) bool { return !r.Released }

// keysFor returns the keys of the table that begin with prefix: as many as can be
// read in time, none if anything fails. It writes nothing, neither a message nor
// a store that is not there yet.
func (a *app) keysFor(cmd *cobra.Command, prefix string, wanted func(leasehold.Record) bool) []cobra.Completion {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	cmd.SetContext(ctx)
	env := a.Env
	env.Stderr = io.Discard
	a.say, a.completing = newMessages(env), true
	if p, err := choosePlace(a.flags, a.Env, ""); err != nil || p.file != "" && !exists(p.file) {
		return nil
	}
	s, err := a.open(cmd, "")
	if err != nil {
		return nil
	}
	defer s.close()
	locks, err := s.locks(leasehold.Config{})
	if err != nil {
		return nil
	}
	defer closeLocks(locks)
	var opts []leasehold.ListOption
	if prefix != "" {
		opts = append(opts, leasehold.ListPrefix(prefix))
	}
	seen := map[string]bool{}
	var keys []cobra.Completion
	for r, err := range locks.List(ctx, opts...) {
		key := r.Key.Partition
		if ctx.Err() != nil || len(keys) == completionKeys {
			break
		}
		// A shell would not take a key with a tab, or with a line's end, as one.
		if err == nil && wanted(r) && !seen[key] && !strings.ContainsFunc(key, func(c rune) bool { return !unicode.IsPrint(c) }) {
			seen[key] = true
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
