package leasehold_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/leasehold-go/leasehold/internal/layouttest"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/localdynamo/boltstore"
)

func TestEveryLayoutInMemory(t *testing.T) {
	for _, s := range layouttest.Subjects() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			layouttest.Exercise(t, inVirtualTime(func(*testing.T) *localdynamo.Engine { return localdynamo.New() }), s)
		})
	}
}

func TestEveryLayoutInAFile(t *testing.T) {
	for _, s := range layouttest.Brief() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			layouttest.Exercise(t, inVirtualTime(func(t *testing.T) *localdynamo.Engine {
				store, err := boltstore.Open(filepath.Join(t.TempDir(), "locks.db"))
				if err != nil {
					t.Fatal(err)
				}
				return localdynamo.New(localdynamo.WithStore(store))
			}), s)
		})
	}
}

// inVirtualTime runs every check in a bubble with an engine of its own.
func inVirtualTime(open func(*testing.T) *localdynamo.Engine) layouttest.Engine {
	return layouttest.Engine{
		Virtual: true,
		Run: func(t *testing.T, check func(*testing.T, layouttest.Connect)) {
			synctest.Test(t, func(t *testing.T) {
				engine := open(t)
				t.Cleanup(func() { _ = engine.Close() })
				check(t, engine.Client)
			})
		},
	}
}
