// Package requests is what becomes of the requests that the command sends: each is seen
// once, by a middleware of the SDK, and made a plain value (Request), of which the rest
// of this package, and who else watches, work out what they say.
//
//	Watch ──► Request ──┬─ Health   since when no request was answered: Trouble
//	                    ├─ Log      a line for each request, with -v
//	                    ├─ Meter    how many requests there were, and what they used
//	                    └─ checks   the connections, the clock and the time of each, for doctor
//
// A request is one that is sent: where the SDK tries again, each try is one. What is told
// of it is told when it has ended, except to Health, which must know of those that do not
// end: it is told when an operation begins and when its request is sent, as before that
// the SDK may wait for credentials.
//
// Trouble is told to a person while requests fail, for they are tried again for a long
// time, and a command would be silent meanwhile: see News. A request counts as answered
// if DynamoDB did what it was asked or refused it, and as failed if there was no reply,
// one that cannot be read, one of a server that has failed, or one that throttles. One
// that the command itself has cancelled says nothing about DynamoDB.
//
// Nothing here prints, and nothing here knows which command sends.
package requests
