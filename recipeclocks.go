package leasehold

import (
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
)

// SetClocks is for package locktest: testing/synctest fakes one of the two
// clocks only.
func (i inner) SetClocks(now func() (mono, boot time.Duration)) {
	i.c.now = func() decide.Instant {
		mono, boot := now()
		return decide.Instant{Mono: mono, Boot: boot}
	}
}
