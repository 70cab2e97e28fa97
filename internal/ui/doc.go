// Package ui serves a page in the browser over the state of a lock table.
//
//	observe.go   what a change of a record means: grant, renewal, takeover...
//	state.go     how a key stands
//	history.go   what is remembered of a key: its grants and what happened
//	view.go      what the page is told of a key
//	pace.go      how fast the table may be read
//	scan.go      reads the table again and again, once for all pages
//	source.go    the requests to DynamoDB
//	stream.go    tells the pages what has changed
//	breaking.go  breaks the grant that was shown, and no other
//	access.go    who may ask
//	proof.go     how a page and a server prove themselves to each other
//	server.go    the routes
//	page/        what is served: plain HTML, CSS and modules
//
// Decisions are pure functions over what was read and when. Requests and clocks
// are in scan.go and source.go.
//
// # Who proves what to whom
//
// Other users of the machine may listen on the port before a server and after it, and
// on every other port while it runs. So each server has a name of its own, which is
// random and ends in .localhost: to the browser that is an origin that nobody else has
// served or will serve, in which nobody has left a service worker. The browser finds it
// at both loopback addresses, and the command listens on both.
//
// A server has a secret. Whom it lets in it tells the secret, and the page keeps it in
// its memory, not where another page of the origin finds it. From it are made:
//
//   - the token, HMAC(secret, "page" and the server's name and port). It is in the URL,
//     and in each request. It lets in the page, to this server and no other: the next one
//     has another name.
//   - the proof, HMAC(secret, "server" and a nonce of the page and the server's name and
//     port). The page asks for it each time before it connects again, and sends nothing to
//     who does not have it.
//
// A server that was restarted with the same secret and port proves itself under its new
// name. The page makes the token for that, and goes there. Its secret was never sent to
// who had the port meanwhile, and the old token opens nothing.
package ui
