// Package languages tests a Python file and a Node.js file that hold locks by running the
// command leasehold. docs/languages.md tells users to copy the file for their language.
// Besides the copied file, users need only the command.
package languages
