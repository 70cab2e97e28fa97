// Package languages tests two files that users copy into their programs (docs/languages.md): one
// for Python, and one for Node.js. The functions in these files run the command leasehold to hold
// locks, so users need only the file and the command.
package languages
