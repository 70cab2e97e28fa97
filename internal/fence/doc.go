// Package fence commits writes that are applied only while the grants of locks
// stand, and finds out whether they were.
//
// A commit is one transaction: the caller's writes, and a guard for each grant,
// a condition that fails once the grant has ended and then always fails. Every
// request of a commit carries one idempotency token. DynamoDB promises of those
// (API reference, TransactWriteItems, ClientRequestToken) that a request
// repeated under the token of one that was applied succeeds and writes nothing,
// whatever its conditions say by now, and that a token which one request has
// used refuses any other.
//
//	          answered                     answered: it will never be applied
//	sending ─────────► done      voiding ─────────► cancelled
//	   │                          ▲   │
//	   └─ a write failed, while ──┘   └─ the token is taken ─► rereading ─► done
//	      an earlier request has
//	      had no answer
//
// A lost reply is answered by sending the same request again. That is not enough
// once a write has failed its own condition: an earlier request may still arrive,
// find the condition true and be applied. So the guards alone are sent under the
// same token. If they are applied, the token is used up and the writes never
// will be. If the token is taken, the writes were applied, and sending them once
// more shows that.
//
// What follows from each answer is decide.NextCommit. The package knows grants
// as guards of a request. Whether their locks are still trusted, and whose turn
// it is to send, it asks [Locks].
package fence
