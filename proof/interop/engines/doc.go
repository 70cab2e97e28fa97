//go:build linux

// Package engines installs and starts real servers of the DynamoDB API, so that tests and
// benchmarks also run against servers of other projects.
//
//	server := engines.Run(t, engines.Dynoxide) // stopped when the test ends
//	client := server.Client()
//
// Each engine is installed once, in a pinned version. All engines are installed in .engines
// at the root of the repository, or in the folder that LEASEHOLD_ENGINES names. A server can be
// reached only at 127.0.0.1, on a free port. When the process that started a server ends or is
// killed, the server ends, too.
//
// The package needs Linux: a network namespace keeps a server on loopback, and the parent-death
// signal kills a server when its parent process ends.
package engines
