//go:build linux

package interop

import (
	"testing"

	"github.com/leasehold-go/leasehold/internal/conformance"
	"github.com/leasehold-go/leasehold/proof/interop/engines"
)

func TestRealEnginesPassConformanceTests(t *testing.T) {
	for _, e := range engines.All() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			conformance.Run(t, conformance.Engine{Name: e.Name, Client: engines.Run(t, e).Client()})
		})
	}
}
