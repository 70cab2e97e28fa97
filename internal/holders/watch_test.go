package holders

import (
	"fmt"
	"math"
	"testing"
	"time"
)

func TestReadIntervalStaysBounded(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for left, want := range map[time.Duration]time.Duration{
		0:                 minReadInterval,
		10 * time.Second:  3 * time.Second,
		time.Hour:         maxReadInterval,
		98 * year:         maxReadInterval, // three times this duration overflows and is negative
		math.MaxInt64:     maxReadInterval,
		-time.Millisecond: minReadInterval,
	} {
		t.Run(fmt.Sprint(left), func(t *testing.T) {
			if got := readingsApart(left); got != want {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
}
