//go:build linux

// Package peers runs lock libraries (peers), leasehold among them. Each runs in a separate
// process, which a test can kill or suspend:
//
//	java := peers.Run(t, peers.AWSLabs, server.Endpoint, peers.Settings{Table: "locks", Lease: 2 * time.Second})
//	ours := peers.Run(t, peers.Ours("awslabs"), server.Endpoint, peers.Settings{Table: "locks", Lease: 2 * time.Second})
//	held := java.Acquire(t, "k")
//	ours.Refused(t, "k")
//	waiting := ours.Send(peers.Request{Do: "acquire", Key: "k", Wait: time.Minute})
//	java.Release(t, held)
//	reply, err := waiting.Reply(t.Context())
//
// Each library is installed in a pinned version, in the same place as the servers of package
// engines. The processes, called drivers, speak the line protocol of proof/interop/README.md. A
// driver finds DynamoDB by the environment variables of the AWS SDKs, and is killed when the
// process that started it ends.
package peers
