package cli

import (
	_ "embed"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold-go/leasehold/internal/cli/invocation"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// These are the template of the command help, for cobra, and the texts of the help's
// topics.
var (
	//go:embed topics/help.tmpl
	helpTemplate string
	//go:embed topics/exit-codes.txt
	exitCodesText string
	//go:embed topics/environment.txt
	environmentText string
	//go:embed topics/events.txt
	eventsText string
	//go:embed topics/json.txt
	jsonText string
)

// newHelp returns the command help, for commands and topics. Cobra's own help exits with 0
// if a command does not exist.
func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Help about a command or a topic", Hidden: true, DisableFlagsInUseLine: true,
		RunE: func(_ *cobra.Command, args []string) error {
			found, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return misuse.Of(root, "unknown command or topic %s", visible.Name(strings.Join(args, " ")))
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}

func newTopic(name, short, text string) *cobra.Command {
	return &cobra.Command{Use: name, Short: short, Long: strings.TrimSuffix(text, "\n")}
}

// newJSONTopic returns leasehold help json. With --json it prints the schema itself.
func newJSONTopic(in *invocation.Invocation) *cobra.Command {
	cmd := newTopic("json", "Output of --json, and the columns in a pipe", jsonText)
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if in.JSON {
			_, _ = cmd.OutOrStdout().Write(say.Schema)
			return
		}
		cmd.Root().HelpFunc()(cmd, args)
	})
	return cmd
}
