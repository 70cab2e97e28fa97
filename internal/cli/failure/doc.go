// Package failure tells the user what an error means: its exit code, its kind in JSON, and
// one line of text with advice. It knows the errors of the library, of AWS and of the disk
// beneath a local store. It knows no flag, no command and no stream: callers pass the place
// of the locks.
//
//	code.go   exit codes, the end of a wait, the kinds and the subjects of errors
//	text.go   the text, without parts that the user has typed or that libraries add about themselves, and
//	          the reason of a failed request; the advice about answers is in decide
package failure
