package cli

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/invocation"
	"github.com/leasehold-go/leasehold/internal/cli/process"
	"github.com/leasehold-go/leasehold/internal/visible"
	"github.com/leasehold-go/leasehold/layout"
)

func newCompletion(in *invocation.Invocation) *cobra.Command {
	names := []cobra.Completion{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:       "completion SHELL [flags]",
		Short:     "Print a script that completes keys and flags in SHELL",
		ValidArgs: names,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return failure.MisuseOf(cmd, "SHELL is missing: use %s", strings.Join(names, ", "))
			case len(args) > 1:
				return failure.MisuseOf(cmd, "only one SHELL is allowed: remove %s", visible.Name(args[1]))
			case !slices.Contains(names, args[0]):
				return failure.MisuseOf(cmd, "unknown SHELL %s: use %s", visible.Name(args[0]), strings.Join(names, ", "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return Completion(cmd.Root(), args[0], in.Stdout) },
	}
}

// Completion writes to w a script that completes leasehold command lines in the given
// shell.
func Completion(root *cobra.Command, shell string, w io.Writer) error {
	var script bytes.Buffer
	var err error
	// Cobra's scripts evaluate the command line when the user presses TAB. A file name in it,
	// chosen by another user, could run a command. So insert a guard: the script returns before
	// the evaluation if the line has one of the characters below.
	const runs = "`({;&|<>"
	var call, guard string
	switch shell {
	case "bash":
		err = root.GenBashCompletionV2(&script, true)
		call, guard = `out=$(eval "${requestComp}" 2>/dev/null)`, "[[ ${requestComp} == *[\\`\\(\\{\\;\\&\\|\\<\\>]* ]] && return"
	case "zsh":
		err = root.GenZshCompletion(&script)
		call, guard = `out=$(eval ${requestComp} 2>/dev/null)`, "[[ ${requestComp} == *[\\`\\(\\{\\;\\&\\|\\<\\>]* ]] && { _files; return }"
	case "fish":
		err = root.GenFishCompletion(&script, true)
		// Cobra's script for fish reads all words but the last, removes their quotes, and later
		// evaluates the words. So replace the line that reads the words. The new line also quotes
		// the words again.
		const words = "set -l args (commandline -opc)"
		quoted := "set -l args (string escape -- (commandline -xpc 2> /dev/null; or commandline -opc))" // option -x of commandline exists since fish 4
		script = *bytes.NewBuffer(bytes.Replace(script.Bytes(), []byte(words), []byte(quoted), 1))
		call, guard = `set -l results (eval $requestComp 2> /dev/null)`, "string match -qr '["+runs+"]' -- $requestComp; and return"
	case "powershell":
		err = root.GenPowerShellCompletionWithDesc(&script)
		call, guard = `Invoke-Expression -OutVariable out "$RequestComp" 2>&1 | Out-Null`, "if ($RequestComp -match '["+runs+"]') { return }"
	}
	if err != nil {
		return err
	}
	before, after, found := strings.Cut(script.String(), call)
	if !found {
		return fmt.Errorf("the script for %s does not evaluate the line where it did", shell)
	}
	_, err = io.WriteString(w, before+guard+"\n    "+call+after)
	return err
}

// plainWord matches words without special characters of bash, zsh, fish or PowerShell. Other words
// are not offered as completions, because the shell evaluates the words of a command line. A
// completed word may be a key that another user has chosen.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9/._][A-Za-z0-9/._:-]*=?$`)

// offering returns a function that calls f and drops the completions that do not match
// plainWord.
func offering(f cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		all, directive := f(cmd, args, toComplete)
		return slices.DeleteFunc(slices.Clone(all), func(c cobra.Completion) bool { return !plainWord.MatchString(c) }), directive
	}
}

// complete registers completions for the flags of cmd and of its subcommands. It wraps each
// completion function with the function offering, which drops words that are unsafe in a
// shell.
func complete(in *invocation.Invocation, cmd *cobra.Command) {
	if cmd.ValidArgsFunction != nil {
		cmd.ValidArgsFunction = offering(cmd.ValidArgsFunction)
	}
	const noFile = cobra.ShellCompDirectiveNoFileComp
	for name, values := range map[string]cobra.CompletionFunc{
		"key":        in.AnyKey,
		"layout":     cobra.FixedCompletions(layout.Names(), noFile),
		"attr":       cobra.FixedCompletions([]cobra.Completion{"key=", "sort=", "ttl="}, noFile|cobra.ShellCompDirectiveNoSpace),
		"signal":     cobra.FixedCompletions([]cobra.Completion{"TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "ALRM", "KILL"}, noFile),
		"background": cobra.FixedCompletions(process.BackgroundModes, noFile),
	} {
		_ = cmd.RegisterFlagCompletionFunc(name, offering(values)) // returns an error if the command does not have the flag: ignore the error
	}
	for _, sub := range cmd.Commands() {
		complete(in, sub)
	}
}
