// Package languages tests a Python file and a Node.js file. Each file runs the command leasehold to
// hold locks. docs/languages.md tells users to copy the file for their language. Besides the copied
// file, users need only the command.
package languages
