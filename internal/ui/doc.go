// Package ui serves a page that shows a lock table in the browser.
//
//	observe.go   what a change of a record means: grant, renewal, takeover...
//	state.go     the state of a key
//	history.go   the remembered grants and events of a key
//	view.go      the messages to the page about keys
//	pace.go      the limit of read units per second
//	scan.go      reads the table repeatedly, once for all pages
//	source.go    the requests to DynamoDB
//	stream.go    sends changes to the pages
//	breaking.go  breaks the grant that was shown, and no other
//	access.go    access control
//	proof.go     how a page and a server prove themselves to each other
//	server.go    the routes
//	page/        the files that are served: plain HTML, CSS and modules
//
// Decisions are pure functions over records and the times when they were read. Requests and
// clocks are in scan.go and source.go.
//
// # How a page and a server trust each other
//
// Other users of the machine may listen on the port before a server and after it, and on
// every other port while it runs. So each server has a random name of its own that ends in
// .localhost. To the browser that name is an origin that no other server has used or will
// use, so no service worker was left in it. The browser resolves the name to both loopback
// addresses, and the command listens on both.
//
// A server has a secret. It sends the secret only to pages that it lets in. A page keeps it
// in memory, where another page of the origin cannot find it. Two values are made from it:
//
//   - the token, HMAC(secret, "page" and the server's name and port). It is in the URL, and
//     in each request. It gives the page access to this server only: the next server has
//     another name.
//   - the proof, HMAC(secret, "server" and a nonce of the page and the server's name and
//     port). The page asks for it each time before it connects again, and sends nothing to
//     a server without it.
//
// A server that was restarted with the same secret and port proves itself under its new
// name. The page makes the token for that name and goes there. The secret was never sent to
// a program that used the port meanwhile, and the old token opens nothing.
package ui
