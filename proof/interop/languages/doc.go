// Package languages contains code in Python and in Node that holds locks by running the
// command. docs/languages.md tells users to copy the two files. Users need to install only
// leasehold beside these files.
package languages
