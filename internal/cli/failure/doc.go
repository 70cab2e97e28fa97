// Package failure says what an error means to who typed the command: its exit code, its
// kind in JSON, and one line of text, with what to do about it. It knows the errors of
// the library, of AWS and of the disk beneath a local store. It knows no flag, no
// command and no stream: who prints hands in where the locks are.
//
//	code.go   exit codes, and what ends a wait
//	text.go   an error's kind and text
//	reason.go why a request failed, and what to do
//	disk.go   tells a full disk from other trouble with a local store
//	plain.go  leaves out what libraries say of themselves
package failure
