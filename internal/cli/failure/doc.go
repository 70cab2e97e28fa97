// Package failure decides how leasehold reports an error to the user. It determines the exit
// code, the kind of error in JSON output, and one line of text with advice. It knows the
// errors of package leasehold, of AWS and of a local store's file. It reads no flags, so its
// callers pass the store's name, which the text may contain. It writes no output: its callers
// print the text.
//
//	code.go   exit codes, kinds and subjects of errors, mistakes of the user, and how a wait ended
//	text.go   the text of an error, which repeats neither the user's input nor the prefixes of
//	          libraries; why a request failed (package decide has the advice about DynamoDB)
package failure
