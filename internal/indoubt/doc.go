// Package indoubt remembers attempts that were abandoned before their outcome was known.
// Each attempt may have been applied, or may still be, and no caller waits for it.
//
// The package knows only the version and the purpose of an attempt. It sends nothing and
// decides nothing: its caller knows the meaning of an unresolved attempt, and undoes it.
// The package reads no clock: every call has the time as an argument.
//
// A query for one attempt takes the same time however many other attempts there are.
package indoubt
