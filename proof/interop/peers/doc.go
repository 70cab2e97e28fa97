//go:build linux

// Package peers runs other lock libraries, and leasehold, each in a process of its own that a
// test can kill and pause:
//
//	java := peers.Run(t, peers.AWSLabs, server.Endpoint, peers.Settings{Table: "locks", Lease: 2 * time.Second})
//	ours := peers.Run(t, peers.Ours("awslabs"), server.Endpoint, peers.Settings{Table: "locks", Lease: 2 * time.Second})
//	held := java.Acquire(t, "k")
//	ours.Refused(t, "k")
//	waiting := ours.Send(peers.Request{Do: "acquire", Key: "k", Wait: time.Minute})
//	java.Release(t, held)
//	reply, err := waiting.Reply(t.Context())
//
// Installs are pinned and go where those of package engines go. The programs
// speak the line protocol of proof/interop/README.md; they reach DynamoDB by the AWS
// SDKs' own environment variables and die with the process that started them.
package peers
