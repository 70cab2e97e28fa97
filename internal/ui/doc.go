// Package ui serves a web page that shows the locks of a table.
//
//	observe.go   which event a change of a record shows: grant, renewal, takeover...
//	state.go     the state of a key
//	history.go   the past grants and events of a key
//	view.go      the messages to the page about keys
//	pace.go      the limit on read units per second
//	scan.go      reads the table in passes, once for all pages
//	source.go    the requests to DynamoDB
//	stream.go    sends changes to the pages
//	breaking.go  breaks the grant that a page showed, and no other
//	access.go    access control
//	proof.go     how a page and a server prove their identity to each other
//	server.go    the routes
//	page/        the files of the page: plain HTML, CSS and JavaScript modules
//
// Decisions are pure functions of records and of the times when they were read. scan.go and
// source.go send the requests and read the clock.
//
// # How a page and a server trust each other
//
// Other users of the machine may listen on the server's port before it starts and after it
// ends, and on every other port while it runs. So each server has a random name that ends in
// .localhost. For the browser that name is an origin of its own. No other server has used the
// name, so none can have left a service worker in that origin. The browser resolves the name
// to both loopback addresses, and the command listens on both.
//
// A server has a secret, and sends it only to pages that have the token. A page keeps the
// secret in memory, where another page of the origin cannot find it. Two values are derived
// from the secret:
//
//   - the token, HMAC(secret, "page" and the server's name and port). It is in the URL and
//     in each request. It gives access to this server only, because the next server has
//     another name.
//   - the proof, HMAC(secret, "server", a nonce of the page, and the server's name and
//     port). The page requests it before each new connection. It sends nothing else to a
//     server that cannot give the proof.
//
// If a server restarts with the same secret and port, it proves itself under its new name.
// The page then derives the token for that name and continues there. Another program that
// used the port in between never received the secret, and the old token is of no use to it.
package ui
