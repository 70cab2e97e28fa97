// Package regions lets locks survive the outage of a Region. Its DB sends the requests of a
// leasehold.Client to one Region of a DynamoDB global table with multi-Region strong
// consistency (MRSC). If that Region does not serve requests, DB sends them to another Region
// of the table.
//
// # Where requests go
//
// DB sends each request once, to one Region. If a write gets no reply, leasehold attempts the
// write again, with a new version, and DB sends this attempt to the next Region. The condition of
// the new attempt names the versions of the earlier attempts: if one of them was applied, the new
// attempt replaces it. So the operation takes effect once. Nothing in the lock's protocol or
// timing depends on this package.
//
//	           home does not serve, and requests may leave
//	at home ───────────────────────────────────────────────► away ──┐ the Region does not serve:
//	   ▲                                                      │ ▲   │ move to the next Region
//	   └─────────── home has answered probes for 30 s ────────┘ └───┘
//
// A Region does not serve if a request to it gets no reply or a server error, or if the Region's
// endpoint has no address or accepts no connection. Requests stay in a Region that throttles or
// refuses them, or that rejects a write because the write's condition is false. Requests also stay
// if the caller cancels a request.
//
// Once a Region has replied to a write within a second, each later write to this Region waits only
// one second for its reply. A Region may be slow with writes alone, so reads of one item have this
// limit only after a read, or a probe (see below), has had such a reply. After requests have moved
// to another Region, the limit does not apply until the new Region has replied within a second,
// too. Any other request waits for the time limit of its attempt. If this process notices a
// timeout late, the process itself was paused, and the timeout shows nothing about the Region.
//
// While requests go to another Region, DB also sends probes. A probe is a strongly consistent
// read in the home Region. DB sends it together with a request, at most every five seconds.
// After home has replied to every probe for thirty seconds, each time within a second, requests
// return home. If home fails within two minutes after a return, it must reply for twice as long
// before the next return: for a minute, then for two minutes and so on, up to eight minutes.
//
// # Which tables
//
// On a global table of the default mode (MREC), two Regions can both grant a lock (Developer
// Guide, "How DynamoDB global tables work"). So DB sends DescribeTable to every Region,
// together with the first request. Requests may leave home only after a reply shows that the
// table is strongly consistent across Regions and has an active replica in each Region. If the
// replies show that the table is not strongly consistent or lacks an active replica, or if
// DescribeTable is denied, requests go home. In an outage, the error of a request contains the
// reason, and DB sends DescribeTable again, unless the table is not strongly consistent.
//
// An MRSC table has no transactions: Commit, CommitAndRelease and Read return an
// *UnsupportedError, and so does GuardError for a transaction with Guards. Instead, compare
// fencing tokens, or keep the data in the lock's record. An MRSC table has no TTL either.
package regions
