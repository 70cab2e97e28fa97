// Package say is what the command says, and how: text for people, JSON for programs. What
// others wrote shows, and does not act: nothing reaches a standard stream past Output. It
// knows no flag, no command and no store: who speaks hands in what is to be said.
//
//	output.go      the standard streams, with colours and sequences of our own
//	messages.go    messages on stderr: notes, errors, one line that is rewritten
//	record.go      a record as JSON, an item as DynamoDB JSON, and what --json prints, as JSON Schema
//	fields.go      one record for people
//	listing.go     many records, and what becomes of them
//	progress.go    how long the holders of records are observed, and at which cost
//	event.go       the events of --json, and where --events writes them
package say
