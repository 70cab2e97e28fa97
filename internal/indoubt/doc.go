// Package indoubt remembers write attempts that were abandoned before their outcome was
// known. DynamoDB may have applied such an attempt, or may apply it later, but no call waits
// for the outcome any longer.
//
// The package stores only the version of an attempt, and the attempt's key or grant. The package
// sends no requests: other packages resolve the attempts and undo their effects. The package
// reads no clock: the caller passes the time to each function that needs it.
//
// A query for one attempt takes the same time however many other attempts there are.
package indoubt
