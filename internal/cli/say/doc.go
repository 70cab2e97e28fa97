// Package say is what the command says, and how: text for people, JSON for programs. What
// others wrote shows, and does not act: nothing reaches a standard stream past Output. It
// knows no flag, no command and no store: who speaks hands in what is to be said.
//
//	output.go      the standard streams, with colours and sequences of our own
//	messages.go    messages on stderr: notes, errors, one line that is rewritten
//	screen.go      the alternate screen of ls --watch
//	notice.go      what is said once at each terminal
//	record.go      a record as JSON; item.go: an item as DynamoDB JSON
//	fields.go      one record for people
//	listing.go     many records, and what becomes of them
//	progress.go    how long the holders of records are observed, and at which cost
//	schema.go      what --json prints, as JSON Schema
//	event.go       the events of --json; eventstream.go: those of --events
package say
