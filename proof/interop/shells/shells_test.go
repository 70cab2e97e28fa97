//go:build linux

package shells

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/proof/interop/install"
)

// shell is a shell for which "leasehold completion" prints a script.
type shell struct {
	name     string
	packages []string // Debian packages to install if the shell is missing
	file     string   // file that exists once these packages are installed
	settings string   // path of the shell's settings file, relative to HOME
	command  []string // arguments of the shell
	text     string   // content of the settings file
}

// With these settings, the shells list completions without first asking the user. A typed key
// always edits the command line: it never controls a pager that shows completions.
var shells = []shell{
	{
		name: "bash", packages: []string{"bash", "bash-completion"}, file: "/usr/share/bash-completion/bash_completion",
		settings: ".bashrc", command: []string{"--noprofile", "-i"},
		text: `
. /usr/share/bash-completion/bash_completion
. <(leasehold completion bash)
bind 'set completion-query-items 0'
bind 'set page-completions off'
bind 'set enable-bracketed-paste off'
bind -x '"\C-t": tell'
tell() { printf '%s\0' "$READLINE_LINE" >"$LINES_TO"; }
PROMPT_COMMAND='PS1="prompt$((++prompts))>"'
unset HISTFILE
`,
	},
	{
		name: "zsh", packages: []string{"zsh"}, file: "/usr/bin/zsh",
		settings: ".zshrc", command: []string{"--no-globalrcs", "-i"},
		text: `
autoload -Uz compinit
compinit -u -D
. <(leasehold completion zsh)
LISTMAX=100000
unsetopt prompt_sp
unset zle_bracketed_paste
tell() { printf '%s\0' "$BUFFER" >"$LINES_TO" }
zle -N tell
bindkey '^T' tell
precmd() { PS1="prompt$((++prompts))>" }
`,
	},
	{
		// fish shows completions in a pager, where Enter would only close the pager. So this
		// binding first accepts the selected completion, and then runs the line.
		name: "fish", packages: []string{"fish"}, file: "/usr/bin/fish",
		settings: ".config/fish/config.fish", command: []string{"-i"},
		text: `
leasehold completion fish | source
set -g fish_greeting
set -g fish_autosuggestion_enabled 0
function tell
    printf '%s\0' (commandline | string collect) >$LINES_TO
end
bind \ct tell
bind \r 'commandline -a " "; commandline -f execute'
set -g prompts 0
function number_prompt --on-event fish_prompt
    set -g prompts (math $prompts + 1)
end
function fish_prompt
    echo -n "prompt$prompts>"
end
`,
	},
}

// start starts the shell in the directory dir. It first writes the shell's settings file to
// the directory home.
func (s shell) start(t *testing.T, dir, home string, env []string) *terminal {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := install.DebianFile(ctx, s.file, s.packages...); err != nil {
		t.Skip(err)
	}
	settings := filepath.Join(home, s.settings)
	// fish generates completions from manual pages in the background unless the second folder exists.
	for _, folder := range []string{filepath.Dir(settings), filepath.Join(home, ".local/share/fish/generated_completions")} {
		lab.OK(t, os.MkdirAll(folder, 0o700))
	}
	lab.OK(t, os.WriteFile(settings, []byte(s.text), 0o600))
	return newTerminal(t, dir, append(env, "HOME="+home, "ZDOTDIR="+home), append([]string{s.name}, s.command...))
}
