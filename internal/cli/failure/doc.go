// Package failure says what an error means to who typed the command: its exit code, its
// kind in JSON, and one line of text, with what to do about it. It knows the errors of
// the library, of AWS and of the disk beneath a local store. It knows no flag, no
// command and no stream: who prints hands in where the locks are.
//
//	code.go   exit codes, what ends a wait, what an error may be, and what it is about
//	text.go   its text, without what the user has typed or libraries say of themselves, and
//	          why a request failed; what to do about an answer is in decide
package failure
