// Package requests observes the requests that leasehold sends to DynamoDB. A middleware of
// the SDK turns each request into a plain value (Request), and passes it to these consumers:
//
//	Watch ──► Request ──┬─ Health   how long no request has been answered
//	                    ├─ Log      a line for each request, with -v
//	                    ├─ Metered  number of requests, and the capacity that they consumed
//	                    └─ checks   for doctor: the connections, the clock, the duration of each request
//
// If the SDK retries an operation, each attempt is one request. The consumers receive a
// request when it has ended. But Health must also notice a request that hangs. So the
// middleware also calls Health when an operation begins, and when a request is sent. In
// between, the SDK may wait for credentials.
//
// leasehold may retry failed requests for a long time. Meanwhile it tells the user about the
// failures: the type Trouble describes them, and the type News is the report to the user.
//
// A request counts as answered if DynamoDB executed or rejected it. It counts as failed if it
// got no reply, an unreadable reply, a server error (5xx) or throttling. A request that leasehold
// itself has cancelled does not count.
//
// The package prints nothing and does not depend on any command.
package requests
