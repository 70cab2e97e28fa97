// Package leasehold is a distributed lock on Amazon DynamoDB.
//
// A lock is a lease that its holder keeps renewing. When the holder dies, the
// lease expires and another client takes over. DynamoDB is the only server.
//
//	locks, err := leasehold.New(dynamodb.NewFromConfig(cfg), leasehold.Config{Table: "locks"})
//	...
//	err = locks.Do(ctx, "customer/42", func(ctx context.Context, lock *leasehold.Lock) error {
//		return lock.Commit(ctx, writes) // lands only while the lock is held
//	})
//
// # Which context ends when
//
//	passed to Acquire   bounds the wait; if it ends after the grant, the lock is still held
//	lock.Context()      ends with the lock; has the values of Acquire's context, not its cancellation
//	lock.Bind(ctx)      ends with the lock or with ctx, whichever is first
//	inside Do           Bind(ctx)
//	passed to Release   bounds the wait for the reply, but allows at least Config.ReleaseGrace
//
// # What is promised
//
//  1. Fenced work is safe, always. A write made through [Lock.Commit], or in a
//     transaction with [Lock.Guards], never lands after its grant ended: despite
//     pauses, delays, repeated requests, lost replies and jumping clocks. This rests
//     on DynamoDB's conditional writes, not on time.
//  2. The holder stops first. [Lock.Err] is set and [Lock.Context] ends before any other
//     client can be granted the lock, if two clocks drift apart by less than
//     Config.Margin within a lease. After a pause of the process, the first
//     call of Err or Context already shows a loss.
//  3. A dead holder blocks nobody for long. A waiter takes over within one lease, plus
//     one round trip, of the first reply that showed the last renewal.
//  4. One lost reply loses nothing. A write that was applied, but whose reply never
//     came, is recognised by its client.
//
// # What is not promised
//
//   - A lock without fencing cannot guarantee exclusion in an asynchronous network: a write
//     of a holder may still be on its way when its lease expires. Write through Commit or
//     Guards, or have the target compare [Lock.Token].
//   - Two Regions of an eventually consistent global table can both grant one key.
//   - With Config.MaxSkew, a clock that is wrong by more than MaxSkew lets two clients hold
//     one lock. [Client.Break], and HoldThroughOutage of [layout.AWSLabs], give up promise 2.
//     Commits stay safe.
//   - A holder on a suspended VM, whose clocks stop, learns late of a loss.
//
// # When a call fails
//
// [ErrHeld]: another client holds the key. [ErrLost]: the lock is gone, and the writes of a
// Commit have not been applied. [ErrUnknownOutcome]: no answer came in time, and a write may
// have been applied, or may be applied later. If ctx ended a call, the error matches
// context.Cause(ctx) and ctx.Err(). Lost replies and throttling are retried within the
// bounds of the call; the SDK's own retries are off, as a repeated write must carry a new
// version.
//
// The states of a record and every request are in docs/internals/protocol.md, the promises
// with their tests in docs/guarantees.md. The examples below run as tests.
package leasehold
