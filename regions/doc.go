// Package regions lets locks survive the outage of a Region. Its DB sends the requests of a
// leasehold.Client to one Region of a DynamoDB global table with multi-Region strong
// consistency (MRSC). If that Region does not serve, DB sends them to another Region of the
// table.
//
// # Where requests go
//
// DB sends each request once, to one Region. If a request gets no answer, the lock makes
// another attempt, with a new version and a condition that names the earlier attempts. DB
// sends that attempt to the next Region. If an earlier attempt was applied after all, the new
// one replaces it, so the operation takes effect once. Nothing in the lock's protocol or
// timing depends on this package.
//
//	at home ──── home does not serve, and requests may leave ─────► away
//	   ▲                                                             │ the Region does not
//	   │  home has answered probes for 30 s                          │ serve: the next one
//	   └───────────────────────────────────────────────────── away ◄─┘
//
// A Region does not serve if a request to it gets no answer, no connection, no address, or a
// server error. Requests stay in a Region that throttles or refuses them, or in which their
// condition fails. They also stay if the caller cancels a request.
//
// A write, or a read of one item, waits one second for an answer if the Region has answered
// such a request within a second since requests last moved. The probes that brought requests
// home count as such. Any other request waits until the attempt's own limit. If this process
// notices a timeout late, the process itself was paused, and the timeout says nothing about
// the Region.
//
// While requests go to another Region, DB sends a probe at most every five seconds, beside a
// request. A probe is a strongly consistent read in the home Region. Once home has answered
// every probe for thirty seconds, each within a second, requests return home. If home fails
// again within two minutes, the next return takes twice as long, but at most eight minutes.
//
// # Which tables
//
// On a global table of the default mode (MREC), two Regions can both grant a lock (Developer
// Guide, "How DynamoDB global tables work"). So DB sends DescribeTable to every Region, beside
// the first request. Requests may leave home only after an answer shows that the table is
// strongly consistent and has an active replica in each Region. After any other answer, or if
// DescribeTable is denied, requests stay home permanently, and the error of a request in an
// outage contains the reason.
//
// An MRSC table has no transactions: Commit, CommitAndRelease and Read return an
// *UnsupportedError, and so does GuardError for a transaction with Guards. Compare tokens
// instead, or keep the data in the lock's record. An MRSC table has no TTL either.
package regions
