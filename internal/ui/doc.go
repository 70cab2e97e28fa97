// Package ui serves a web page that shows the locks of a table.
//
//	observe.go   derives events (grant, renewal, takeover...) from the changes of a record
//	state.go     the state of a key
//	history.go   the past grants and events of a key
//	view.go      the messages about keys that the server sends to web pages
//	pace.go      the limit on read units per second
//	scan.go      reads the whole table again and again, and shares the reads among the pages
//	source.go    the requests to DynamoDB
//	stream.go    sends changes to the web pages
//	breaking.go  breaks the grant that a web page showed, and only that grant
//	access.go    access control
//	proof.go     the proof by which a page and a server trust each other
//	server.go    the routes
//	page/        the files of the page: plain HTML, CSS and JavaScript modules
//
// The code that makes decisions consists of pure functions. Their inputs are records and the
// times at which the records were read. Requests to DynamoDB come only from breaking.go, scan.go
// and server.go, through source.go. Only scan.go, server.go and stream.go read the clock.
//
// # How a page and a server trust each other
//
// Other users of the machine may listen on the server's port before the server starts and after
// it has stopped, and on every other port while it runs. So each server has a random name that
// ends in .localhost. For the browser that name is an origin of its own. No other server has used
// the name, so no other server can have left a service worker in the origin. The browser resolves
// the name to both loopback addresses, and the command listens on both.
//
// A server has a secret, and sends it only to pages that have the token. A page keeps the
// secret in memory, where another page of the origin cannot find it. Two values are derived
// from the secret:
//
//   - the token, HMAC(secret, "page" and the server's name and port). It is in the URL and
//     in each request. It gives access to this server only, because the next server has
//     another name.
//   - the proof, HMAC(secret, "server", a nonce of the page, and the server's name and
//     port). The page requests the proof before each new connection. If a server cannot
//     give it, the page sends nothing else to that server.
//
// A server that restarts with the same secret and port has a new name, and sends it with its
// proof. From the name and the secret, the page derives the new token, and continues there. A
// program that used the port in between may have received the old token, which the new server
// rejects, but not the secret.
package ui
