//go:build linux

// Package engines installs and starts real servers of the DynamoDB API, so that tests and
// benchmarks also run against servers that others have written.
//
//	server := engines.Run(t, engines.Dynoxide) // stopped when the test ends
//	client := server.Client()
//
// Each engine is installed once, in a pinned version. It is in .engines at the root of the
// repository, or in the folder that LEASEHOLD_ENGINES names. A server listens only on a
// free port of 127.0.0.1. It ends with the process that started it, even if that process is
// killed.
//
// The package needs Linux: a network namespace keeps a server on loopback, and the
// parent-death signal ends it with its parent.
package engines
