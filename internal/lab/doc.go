// Package lab contains helpers for tests of lock clients. A World is an in-memory DynamoDB with
// a lock table. World.Client returns a client with its own simulated machine and network. A
// Wire is such a network, and a Fault decides how the Wire treats a request.
//
//	lab.InBubble(t, func(t *testing.T, w *lab.World) {
//		c, wire := w.Client(lab.Config())
//		wire.SetFault(lab.Once(lab.Call.Grants, lab.LoseReply))
//		lock := w.Acquire(c, "job")
//		...
//	})
//
// A method of a World calls t.Fatal if it fails, so call it on the test's goroutine. Methods of
// a Wire may be called by several goroutines.
package lab
