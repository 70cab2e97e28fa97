// Package lab helps to test clients. It has an in-memory DynamoDB with a lock table (World),
// clients with a machine and a network of their own (World.Client), and networks with faults
// (Wire, Fault).
//
//	lab.InBubble(t, func(t *testing.T, w *lab.World) {
//		c, wire := w.Client(lab.Config())
//		wire.SetFault(lab.Once(lab.Call.Grants, lab.LoseReply))
//		lock := w.Acquire(c, "job")
//		...
//	})
//
// A method of a World that fails ends the test, so call it on the test's goroutine. Methods of
// a Wire may be called by several goroutines.
package lab
