// Package shells tests the completion of the command in real shells: it types lines with
// command substitutions into bash, zsh and fish on a terminal, and presses TAB. zsh and
// fish come from Debian's packages. If a shell is missing, its tests are skipped with a
// message. Debian has no package of PowerShell, so internal/cli checks only the text of
// PowerShell's script, in TestCompletionScriptNeverEvaluatesCommandLineWithBacktick.
package shells
