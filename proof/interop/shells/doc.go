// Package shells types hostile lines into real shells: bash, zsh and fish on a terminal,
// with the script of leasehold completion and TAB. zsh and fish come from Debian's
// packages. If a shell is missing, its tests are skipped with a message. Debian has no
// PowerShell package, so TestCompletionDoesNotEvaluateCommandSubstitution in internal/cli checks
// the text of PowerShell's script.
package shells
