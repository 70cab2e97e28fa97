// Package requests observes the requests that the command sends. A middleware of the SDK
// turns each request into a plain value (Request). The rest of this package and other
// observers evaluate these values.
//
//	Watch ──► Request ──┬─ Health   since when no request was answered: Trouble
//	                    ├─ Log      a line for each request, with -v
//	                    ├─ Metered  how many requests there were, and what they used
//	                    └─ checks   the connections, the clock and the time of each, for doctor
//
// Each request that is sent counts: if the SDK repeats an operation, each attempt is one
// request. Observers receive a request when it has ended. Only Health also needs to know of
// requests that do not end: it is notified when an operation begins and when its request is
// sent, since the SDK may wait for credentials before that.
//
// Trouble is reported to the user while requests fail, because they are repeated for a long
// time and the command would be silent meanwhile: see News. A request counts as answered if
// DynamoDB did it or refused it. It counts as failed if there was no reply, an unreadable
// reply, a reply of a failed server, or throttling. A request that the command itself has
// cancelled says nothing about DynamoDB.
//
// Nothing here prints, and nothing here knows the command that sends.
package requests
