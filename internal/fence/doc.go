// Package fence commits writes that are applied only while the grants of locks are
// current, and finds out whether the writes were applied.
//
// A commit is one transaction: the caller's writes, and a guard for each grant. A
// guard is a condition that fails forever once the grant has ended.
// Every request of a commit carries the same idempotency token. DynamoDB promises
// two things about tokens (API reference, TransactWriteItems, ClientRequestToken).
// A request that is repeated after it was applied succeeds and writes nothing,
// even if its conditions are false by then. A different request under a used token
// is rejected.
//
//	        outcome known                  guards applied: the writes can never be applied
//	sending ─────────► done      voiding ─────────► cancelled
//	   │                          ▲   │
//	   └─ a write failed, while ──┘   └─ the token is taken ─► rereading ─► done
//	      an earlier request has
//	      had no answer
//
// After a lost reply, the commit sends the same request again (sending). If one of
// the writes then fails its own condition, the outcome is still unknown: an earlier
// request may arrive late, find the condition true and be applied. So the commit
// sends a request with the guards alone under the same token (voiding). If DynamoDB
// applies this request, the token is used up, and the writes can never be applied.
// If DynamoDB answers that the token is taken, the writes were probably applied. To be
// sure, the commit sends the first request again, only for its answer (rereading). If that
// request succeeds, the writes were applied; otherwise the outcome may stay unknown.
//
// The function decide.NextCommit decides what the commit does after each answer.
// This package knows grants only as guards of a request. The package asks [Locks]
// whether the locks are still trusted, and when a request may be sent.
package fence
