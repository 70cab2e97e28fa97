// Package layouttest tests every layout, on any engine, against the promises of
// package leasehold.
//
//	for _, s := range layouttest.Subjects() {
//		t.Run(s.Name, func(t *testing.T) { layouttest.Exercise(t, engine, s) })
//	}
//
// The checks use only the public API of leasehold. Each layout is compatible with one other lock
// library, and a client of that library is called a peer. The checks write the records of peers
// themselves. Each check is a subtest, and its name is the claim that it checks. To read this
// package, start with [Exercise] and [Subject], then any file of checks: granting.go, dead.go,
// damage.go.
package layouttest
