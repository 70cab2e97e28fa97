//go:build linux

package interop

import (
	"testing"

	"github.com/leasehold-go/leasehold/internal/layouttest"
	"github.com/leasehold-go/leasehold/proof/interop/engines"
)

// TestLayoutsWorkOnRealEngines runs the layouts with real leases, as short as
// they can be, on servers that this project did not write.
func TestLayoutsWorkOnRealEngines(t *testing.T) {
	for _, e := range engines.All() {
		t.Run(e.Name, func(t *testing.T) {
			server := engines.Run(t, e)
			on := layouttest.Engine{Run: func(t *testing.T, check func(*testing.T, layouttest.Connect)) {
				check(t, server.Client)
			}}
			t.Run("layouts", func(t *testing.T) { // this subtest ends after all layouts, so that the server does not stop earlier
				for _, s := range layouttest.Brief() {
					t.Run(s.Name, func(t *testing.T) {
						t.Parallel()
						layouttest.Exercise(t, on, s)
					})
				}
			})
		})
	}
}
