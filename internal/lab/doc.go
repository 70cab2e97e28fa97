// Package lab is equipment for testing clients: a DynamoDB in this process with a lock table
// (World), clients with a machine and a network of their own (World.Client), and networks
// that misbehave (Wire, Fault).
//
//	lab.InBubble(t, func(t *testing.T, w *lab.World) {
//		c, wire := w.Client(lab.Config())
//		wire.SetFault(lab.Once(lab.Call.Grants, lab.LoseReply))
//		lock := w.Acquire(c, "job")
//		...
//	})
//
// Methods of a World end the test if they fail: they belong on its goroutine. Methods of a
// Wire may be called by several goroutines.
package lab
