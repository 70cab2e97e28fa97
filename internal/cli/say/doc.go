// Package say writes all output of leasehold: text for people and JSON for programs. The
// output may contain text of other users, such as key names. This text is shown but cannot
// control the terminal, because everything passes through Output. The package reads no
// flags, runs no commands and opens no store: its callers pass what to print.
//
//	output.go      the standard streams, with leasehold's own colours and control sequences;
//	               messages on stderr: notes, errors, and a progress line that is rewritten
//	record.go      a record as JSON and for people, an item as DynamoDB JSON, and the JSON Schema of --json
//	listing.go     a list of records; how long an observation of their holders takes, and how many
//	               requests and read units it costs
//	event.go       the events of --json and --events
//	queue.go       texts for a reader that may be slow: messages, and the events of --events
package say
