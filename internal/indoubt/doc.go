// Package indoubt remembers write attempts that were abandoned before their outcome was
// known. DynamoDB may have applied such an attempt, or may apply it later, and no caller
// waits for it.
//
// The package knows only the version of an attempt, and its key or grant. It sends nothing
// and decides nothing: its caller knows what an unresolved attempt does, and undoes it. The
// package reads no clock: every call has the time as an argument.
//
// A query for one attempt takes the same time however many other attempts there are.
package indoubt
