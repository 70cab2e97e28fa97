// Package requests observes the requests that the command sends. A middleware of the SDK
// turns each request into a plain value (Request). The rest of this package and other
// observers evaluate these values.
//
//	Watch ──► Request ──┬─ Health   how long no request has been answered, reported as Trouble
//	                    ├─ Log      a line for each request, with -v
//	                    ├─ Metered  how many requests there were, and what they used
//	                    └─ checks   for doctor: the connections, the clock, how long each request took
//
// Each request that is sent counts: if the SDK repeats an operation, each attempt is one
// request. Observers receive a request when it has ended. Health must also notice requests
// that hang. It is therefore called when an operation begins, and again when its request is
// sent: the SDK may wait for credentials in between.
//
// Trouble is reported to the user while requests fail, because they are repeated for a long
// time and the command would be silent meanwhile: see News. A request counts as answered if
// DynamoDB did it or refused it. It counts as failed if there was no reply, an unreadable
// reply, a reply of a failed server, or throttling. A request that the command itself has
// cancelled says nothing about DynamoDB.
//
// Nothing here prints, and nothing here knows the command that sends.
package requests
