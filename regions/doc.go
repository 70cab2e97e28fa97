// Package regions lets locks outlive the outage of a Region. Its DB sends the requests of a
// leasehold.Client to one Region of a DynamoDB global table with multi-Region strong
// consistency (MRSC), and to another Region of the table when that one does not answer.
//
// # Where requests go
//
// Each request goes to one Region, once. A request without an answer is repeated by the
// lock, under a new version that names the attempts before it: DB sends that next attempt to
// the next Region, and whichever attempt lands, lands once. So nothing in the lock's protocol
// or timing depends on this package.
//
//	at home ──── home does not serve, and the table is proven ────► away
//	   ▲                                                             │ the Region does not
//	   │  home has answered probes for 30 s                          │ serve: the next one
//	   └───────────────────────────────────────────────────── away ◄─┘
//
// A Region does not serve if a request to it gets no answer, no connection, no address, or a
// server error. It does serve if it throttles, if a condition fails, if it refuses a request
// for any other reason, or if the caller has cancelled the request. A Region that has
// answered within a second since requests go there, or by probes, is silent after one second;
// before that, after the attempt's own limit. Silence that this process notices late was a
// pause of the process, and counts for nothing.
//
// While requests go elsewhere, at most one of them in five seconds brings along a probe: a
// strongly consistent read in the home Region. Thirty seconds of answers, each within a
// second, bring the requests home. If home fails again within two minutes, the next return
// takes twice as many seconds of answers, eight minutes at most.
//
// # Which tables
//
// On a global table of the default mode (MREC), two Regions can both grant a lock. So no
// request leaves home before DescribeTable, sent beside the first request to every Region,
// has said that the table is strongly consistent and has an active replica in each Region. If
// it says anything else, or is denied, requests stay home for good, and the error of an
// outage says why (Developer Guide, "How DynamoDB global tables work").
//
// Such a table has no transactions: Commit, CommitAndRelease and Read return an
// *UnsupportedError there, and so does GuardError for a transaction with Guards. Compare
// tokens instead, or keep the data in the lock's record. It has no TTL either.
package regions
