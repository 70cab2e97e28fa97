// Package failure defines what the command returns as an error, and tells the user what an
// error means: its exit code, its kind in JSON, and one line of text with advice. It knows
// the errors of the library, of AWS and of the disk of a local store. It does not depend on
// flags or streams: callers say where the locks are stored.
//
//	code.go   exit codes, kinds and subjects of errors, mistakes of the user, and how a wait ended
//	text.go   the text, without the user's own input and the libraries' prefixes, and why a
//	          request failed; the advice about DynamoDB's answers is in package decide
package failure
