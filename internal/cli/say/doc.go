// Package say writes the command's output: text for people, JSON for programs. Text from
// other users is shown and never acts on the terminal: all output to the standard streams
// passes through Output. The package knows no flag, no command and no store: callers pass
// the content.
//
//	output.go      the standard streams, with colours and sequences of our own; messages on
//	               stderr: notes, errors, one line that is rewritten
//	record.go      a record as JSON and for people, an item as DynamoDB JSON, and the JSON Schema of --json
//	listing.go     many records and their liveness; how long the holders are observed, and the cost
//	event.go       the events of --json and --events
package say
