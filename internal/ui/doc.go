// Package ui serves a page in the browser over the state of a lock table.
//
//	found.go     what an item of the table is, in any layout
//	observe.go   what a change of a record means: grant, renewal, takeover...
//	beat.go      how long a holder has left, as observed
//	history.go   what is remembered of a key: its grants and what happened
//	view.go      what the page is told of a key
//	pace.go      how fast the table may be read
//	scan.go      reads the table again and again, once for all pages
//	source.go    the requests to DynamoDB
//	stream.go    tells the pages what has changed
//	breaking.go  breaks the grant that was shown, and no other
//	access.go    who may ask
//	server.go    the routes
//	page/        what is served: plain HTML, CSS and modules
//
// Decisions are pure functions over what was read and when. Requests and clocks
// are in scan.go and source.go.
package ui
