// Package languages holds locks in Python and in Node by running the command.
// docs/languages.md tells users to copy the two files; only leasehold must be installed
// beside them.
package languages
