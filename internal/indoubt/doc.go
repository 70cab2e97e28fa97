// Package indoubt remembers attempts that were abandoned before their outcome was known:
// each may have been applied, or may still be, and no caller waits for it.
//
// It knows an attempt by its version and its purpose. It sends nothing, and decides
// nothing: its caller knows what an unresolved attempt means, and undoes it. It reads no
// clock: every call has the time as an argument.
//
// A query for one attempt takes the same time however many others there are.
package indoubt
