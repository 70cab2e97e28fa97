// Package languages tests code in Python and in Node that holds locks by running the
// command leasehold. docs/languages.md tells users to copy the two files. Besides these,
// users need only the command.
package languages
