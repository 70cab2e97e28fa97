// Package layouttest tests every layout, on any engine, against the promises of
// package leasehold.
//
//	for _, s := range layouttest.Subjects() {
//		t.Run(s.Name, func(t *testing.T) { layouttest.Exercise(t, engine, s) })
//	}
//
// It uses only the public API. It writes the records of a peer by hand: a peer is a
// client of the library that a layout belongs to. Each check is a subtest whose name
// is a claim. To read the package, start with [Exercise] and [Subject], then any
// file of checks: granting.go, dead.go, damage.go.
package layouttest
