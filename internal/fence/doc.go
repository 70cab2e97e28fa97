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
//	          answered                     answered: it will never be applied
//	sending ─────────► done      voiding ─────────► cancelled
//	   │                          ▲   │
//	   └─ a write failed, while ──┘   └─ the token is taken ─► rereading ─► done
//	      an earlier request has
//	      had no answer
//
// After a lost reply, the commit sends the same request again. That is not enough
// once a write has failed its own condition: an earlier request may still arrive,
// find the condition true and be applied. So the commit sends the guards alone
// under the same token. If they are applied, the token is used up, and the writes
// can never be applied. If the token is taken, the writes were applied: the commit
// sends the first request once more, and its success shows that.
//
// The function decide.NextCommit decides what follows each answer. This package
// knows grants only as guards of a request. It asks [Locks] whether the locks
// are still trusted, and when it may send.
package fence
