// Package failure tells the user what an error means. It determines the exit code, the kind
// of error in JSON output, and one line of text with advice. It knows the errors of package
// leasehold, of AWS and of a local store's file. It reads no flags and writes no output.
// Its callers pass the name of the store that the text mentions.
//
//	code.go   exit codes, kinds and subjects of errors, mistakes of the user, and how a wait ended
//	text.go   the text, without the user's own input and the libraries' prefixes, and why a
//	          request failed; the advice about DynamoDB's answers is in package decide
package failure
