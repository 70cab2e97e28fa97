//go:build linux

// Package engines installs and starts real servers of the DynamoDB API, so that
// tests and benchmarks run against something this project did not write.
//
//	server := engines.Run(t, engines.Dynoxide) // stopped when the test ends
//	client := server.Client()
//
// Installs are pinned, go to .engines at the root of the repository (or to
// the folder that LEASEHOLD_ENGINES names) and happen once. A server is reached
// on a free port of 127.0.0.1 and on no other address, and dies with the process
// that started it, however that ends.
//
// It needs Linux: what keeps a server on loopback and ties it to its parent are
// a network namespace and the parent-death signal.
package engines
