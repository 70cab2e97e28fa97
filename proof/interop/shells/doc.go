// Package shells types hostile lines into real shells: bash, zsh and fish on a terminal,
// with the script of leasehold completion and TAB. zsh and fish are those of Debian's
// packages; where they cannot be had, their part is skipped and says so. PowerShell is
// in no package of Debian: that its script does not evaluate such a line is what
// TestLineWithSubstitutionIsNotEvaluatedAtTAB in internal/cli says of its text.
package shells
