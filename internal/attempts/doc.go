// Package attempts sends all DynamoDB requests of a client, and finds out the outcome of
// its conditional writes.
//
// An operation on a record is a grant, a renewal, a release or a break. The client sends an
// operation as a sequence of attempts. Each attempt is a write with a new version. Its
// condition names the version V that the operation replaces, and the version of each earlier
// attempt that has had no answer:
//
//	attempt 1   if the record shows V             write version 1
//	attempt 2   if it shows V or 1                write version 2
//	attempt 3   if it shows V or 1 or 2           write version 3
//
// So DynamoDB can apply the next attempt whether or not it has already applied an unanswered
// attempt. DynamoDB rejects an attempt that arrives after a later attempt was applied: the
// record then shows no version that the condition of the earlier attempt names. If a record
// shows the version of an attempt, DynamoDB has applied this attempt, even if the client has
// received no answer.
//
// A sequence ends in one of four ways:
//
//	applied      DynamoDB has applied the last attempt, or the record shows an earlier attempt
//	rejected     the condition failed, and the record shows no version of the sequence
//	not applied  AWS has refused an attempt, or the client must stop. No attempt was applied
//	unanswered   AWS has refused an attempt, or the client must stop. An attempt without an
//	             answer may have been applied, or may still be applied
//
// The client must stop if it is too late for a retry, or if too many attempts have had no answer.
//
// Until the sequence ends, the client retries after temporary failures: throttling, a conflict
// with a transaction, a lost reply. It pauses before each retry, for a random time that grows.
// The list below divides attempts that were not applied into failed attempts, after which the
// client can retry, and refused attempts, after which it gives up.
//
// # What each reply means
//
//	success                      applied
//	condition failed             applied, if the item in the reply shows one of the
//	                             sequence's versions. If not: rejected. If the reply has
//	                             no item, the client reads the record. If that read
//	                             fails: unanswered. DynamoDB may have received the request
//	                             twice, and the condition may have failed only the second time
//	throttled, conflict          failed
//	signed with a wrong time     failed, if the SDK has learned the right time from the
//	                             reply
//	denied, malformed            refused
//	credential provider does     failed: the provider's server may start later than this
//	not answer                   client
//	no credentials, or           failed, if DynamoDB has accepted this client before:
//	credentials refused          valid credentials may soon be available again. If not:
//	                             refused. A success, a failed condition or throttling is
//	                             proof that DynamoDB has accepted the client
//	timeout, reset, 5xx          unanswered
//
// A waiter also retries after a denial, if DynamoDB has answered an earlier request of the
// same wait; [Failure.After] decides this.
//
// The retries of the AWS SDK are turned off: a write that is sent again must be a new
// attempt, whose condition names the earlier attempts.
//
// Package attempts does not depend on locks and leases. The caller's [Operation] builds the
// writes, and finds the operation's versions in a record.
package attempts
