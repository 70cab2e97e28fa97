// Package shells types hostile lines into real shells: bash, zsh and fish on a terminal,
// with the script of leasehold completion and TAB. zsh and fish come from Debian's
// packages; where they are missing, their part is skipped with a message. Debian has no
// package of PowerShell: TestLineWithSubstitutionIsNotEvaluatedAtTAB in internal/cli checks
// the text of its script.
package shells
