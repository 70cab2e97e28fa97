// Package failure decides how leasehold reports an error to the user. It determines the exit
// code, the kind of error in JSON output, and one line of text with advice. It knows the
// errors of package leasehold, of AWS and of a local store's file. It reads no flags, so its
// callers pass the store's name, which the text may contain. It writes no output: its callers
// print the text.
//
//	code.go   exit codes, kinds of errors, mistakes of the user, signals, and the limit of --wait
//	text.go   the text of an error, without the user's input and the prefixes of libraries; its
//	          advice about DynamoDB comes from package decide
package failure
