package leasehold

import (
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
)

// clock reads the two clocks of a holder. Tests of jumping clocks put their
// own in its place; everything else runs on the real one, which
// testing/synctest fakes.
type clock func() decide.Instant

// started is the origin of the monotonic clock: a Go Duration since some Time
// is the only way to read it.
var started = time.Now()

func readClocks() decide.Instant {
	return decide.Instant{Mono: time.Since(started), Boot: sinceBoot()}
}
