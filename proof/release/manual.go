package main

import (
	"bytes"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/leasehold-go/leasehold/internal/cli"
)

// manual returns the documentation files of a release: a manual page for each command and help
// topic, and a completion script for each shell.
func manual(at time.Time) ([]file, error) {
	root := cli.Command()
	root.DisableAutoGenTag = true // cobra's line "auto generated" contains today's date, so two builds would differ
	var files []file
	for _, cmd := range documented(root) {
		var page bytes.Buffer
		cmd.Long = asMarkdown(cmd.Long)
		header := &doc.GenManHeader{Section: "1", Date: &at, Source: "leasehold", Manual: "leasehold"}
		if err := doc.GenMan(cmd, header, &page); err != nil {
			return nil, err
		}
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
		files = append(files, file{name: path.Join("man", name), content: page.Bytes()})
	}
	for name, shell := range map[string]string{
		"leasehold.bash": "bash", "_leasehold": "zsh", "leasehold.fish": "fish", "leasehold.ps1": "powershell",
	} {
		var script bytes.Buffer
		if err := cli.Completion(root, shell, &script); err != nil {
			return nil, err
		}
		files = append(files, file{name: path.Join("completions", name), content: script.Bytes()})
	}
	return files, nil
}

// documented returns the command, its help topics and all its subcommands, except hidden
// ones.
func documented(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() && !sub.Hidden {
			all = append(all, documented(sub)...)
		}
	}
	return all
}

// asMarkdown converts a help text to Markdown, in which indented lines remain separate
// lines.
func asMarkdown(text string) string {
	var out []string
	table := false
	for line := range strings.SplitSeq(text, "\n") {
		indented := strings.HasPrefix(line, "  ")
		if indented != table {
			out = append(out, "")
		}
		if table = indented; table {
			line = "    " + line
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}
