package wording

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// ParseDuration parses the output of Duration, a bare number of seconds, and days, as
// timeout(1) and flock(1) do.
func ParseDuration(s string) (time.Duration, error) {
	if seconds, err := strconv.ParseFloat(s, 64); err == nil && seconds >= 0 && seconds < 1e9 {
		return time.Duration(seconds * float64(time.Second)), nil
	}
	if days, ok := strings.CutSuffix(s, "d"); ok { // a unit of timeout(1)
		if n, err := strconv.ParseFloat(days, 64); err == nil && n >= 0 && n < 1e4 {
			return time.Duration(n * 24 * float64(time.Hour)), nil
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, errors.New("use a duration, such as 30, 90s, 10m or 1h30m")
	}
	return d, nil
}
