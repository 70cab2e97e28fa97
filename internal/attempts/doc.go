// Package attempts sends all requests of the client, and finds out the outcome of its
// conditional writes.
//
// An operation on a record (a grant, a renewal, a release, a break) is a
// sequence of attempts. Each attempt is a write under a version that was never
// used before. Its condition names what the write replaces, and every earlier
// attempt of the sequence that has had no answer:
//
//	attempt 1   if the record shows V             write version 1
//	attempt 2   if it shows V or 1                write version 2
//	attempt 3   if it shows V or 1 or 2           write version 3
//
// So however late an unanswered attempt is applied, the next one replaces it. And no
// attempt is applied after a later one: by then the record shows nothing that its
// condition names. If a record shows one of the versions, that attempt was applied,
// though its answer never came.
//
// A sequence ends in one of four ways:
//
//	applied      this attempt, or an earlier one that the record now shows
//	rejected     the condition failed, and the record shows no version of the sequence
//	refused      AWS refuses the request, and no attempt can have been applied
//	unanswered   no time is left, and attempts without an answer may still be applied
//
// Until then, temporary failures are retried, after random pauses that grow:
// throttling, a conflict with a transaction, a lost reply. So a single attempt may
// also end as failed: it was not applied, and can be retried.
//
// # What each reply means
//
//	success                      applied
//	condition failed             the item in the reply, or a consistent read for an
//	                             engine that returns none, shows one of the sequence's
//	                             versions: applied. If not: rejected. If the read
//	                             fails: unanswered, since this may be the reply to a
//	                             second copy of the request.
//	throttled, conflict          failed
//	signed at a wrong time       failed, if the SDK has learned the right one from the
//	                             reply
//	denied, malformed            refused
//	credentials not reached      failed: their server may start later than this client
//	no credentials, or refused   failed if DynamoDB has ever accepted this client: a
//	                             success, a failed condition or throttling shows it.
//	                             The credentials will soon be good again. Otherwise
//	                             refused
//	timeout, reset, 5xx          unanswered
//
// A wait retries a denial as well, if DynamoDB has answered an earlier request of the
// same wait: see [Failure.After].
//
// The SDK's own retries are off: a write that is sent again must be a new attempt,
// whose condition names the ones before.
//
// The package knows neither locks nor leases. An [Operation] knows what it writes, and
// how it recognises its own version in a record.
package attempts
