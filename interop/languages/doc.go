// Package languages holds locks in Python and in Node, by the command. docs/languages.md
// quotes the two files: take them, there is nothing to install beside leasehold.
package languages
