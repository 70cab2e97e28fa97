// Package layouttest tests every layout, on any engine, against the promises of
// package leasehold.
//
//	for _, s := range layouttest.Subjects() {
//		t.Run(s.Name, func(t *testing.T) { layouttest.Exercise(t, engine, s) })
//	}
//
// The package uses only the public API. A peer is a client of the other lock library with which
// a layout is compatible. The package writes the records of peers itself. Each check is a
// subtest, and its name is the claim that it checks. To read the package, start with [Exercise]
// and [Subject], then any file of checks: granting.go, dead.go, damage.go.
package layouttest
