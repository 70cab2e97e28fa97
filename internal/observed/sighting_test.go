package observed

import (
	"testing"
	"time"
)

func TestAnObservationOfAnotherProcessIsAsOldAsItsClockCanTell(t *testing.T) {
	wall := time.Unix(1_000_000, 0)
	now := Time{Boot: "b", ByBoot: time.Hour, Wall: wall}
	for name, tc := range map[string]struct {
		of   Time
		skew time.Duration
		age  time.Duration
	}{
		"by the same clock":                           {Time{"b", 50 * time.Minute, wall}, 0, 10 * time.Minute},
		"by the same clock, whatever the walls show":  {Time{"b", 50 * time.Minute, wall.Add(-time.Hour)}, time.Second, 10 * time.Minute},
		"by the same clock, in the future":            {Time{"b", 2 * time.Hour, wall}, 0, 0},
		"by the clock of another boot":                {Time{"c", 50 * time.Minute, wall.Add(-time.Minute)}, 0, 0},
		"by the clock of another boot, and the walls": {Time{"c", 50 * time.Minute, wall.Add(-time.Minute)}, time.Second, 59 * time.Second},
		"by a clock without a name":                   {Time{"", 50 * time.Minute, wall.Add(-time.Minute)}, time.Second, 59 * time.Second},
		"by a clock that showed nothing":              {Time{"b", 0, wall.Add(-time.Minute)}, 0, 0},
		"by a wall clock within its skew":             {Time{"", 0, wall.Add(-time.Second)}, 2 * time.Second, 0},
		"by nothing":                                  {Time{}, 0, 0},
	} {
		if age := tc.of.Age(now, tc.skew); age != tc.age {
			t.Errorf("%s: %v, want %v", name, age, tc.age)
		}
	}
	if age := (Time{Wall: wall.Add(-time.Minute)}).Age(Time{Wall: wall}, 0); age != 0 {
		t.Errorf("two clocks without a name are one: %v", age)
	}
}
