// Package layouttest holds every layout, over any engine, to what package
// leasehold promises of it.
//
//	for _, s := range layouttest.Subjects() {
//		t.Run(s.Name, func(t *testing.T) { layouttest.Exercise(t, engine, s) })
//	}
//
// It uses the public API alone, and writes by hand what a client of the library
// that a layout is shared with would write. Each check is a subtest whose name
// is a claim. To read the package, start with [Exercise] and [Subject], then
// any file of checks: granting.go, dead.go, damage.go.
package layouttest
