package observed

import (
	"testing"
	"time"
)

func TestAnObservationOfAnotherProcessIsAsOldAsItsClockCanTell(t *testing.T) {
	wall := time.Unix(1_000_000, 0)
	now := Time{Boot: "b", ByBoot: time.Hour, Wall: wall}
	for name, tc := range map[string]struct {
		of    Time
		skew  time.Duration
		age   time.Duration
		known bool
	}{
		"by the same clock":                           {Time{"b", 50 * time.Minute, wall}, 0, 10 * time.Minute, true},
		"by the same clock, whatever the walls show":  {Time{"b", 50 * time.Minute, wall.Add(-time.Hour)}, time.Second, 10 * time.Minute, true},
		"by the same clock, in the future":            {Time{"b", 2 * time.Hour, wall}, 0, 0, true},
		"by the clock of another boot":                {Time{"c", 50 * time.Minute, wall.Add(-time.Minute)}, 0, 0, false},
		"by the clock of another boot, and the walls": {Time{"c", 50 * time.Minute, wall.Add(-time.Minute)}, time.Second, 59 * time.Second, true},
		"by a clock without a name":                   {Time{"", 50 * time.Minute, wall.Add(-time.Minute)}, time.Second, 59 * time.Second, true},
		"by a clock that showed nothing":              {Time{"b", 0, wall.Add(-time.Minute)}, 0, 0, false},
		"by a wall clock within its skew":             {Time{"", 0, wall.Add(-time.Second)}, 2 * time.Second, 0, true},
		"by nothing":                                  {Time{}, 0, 0, false},
	} {
		if age, known := tc.of.Age(now, tc.skew); age != tc.age || known != tc.known {
			t.Errorf("%s: %v, %t, want %v, %t", name, age, known, tc.age, tc.known)
		}
	}
	if age, known := (Time{Wall: wall.Add(-time.Minute)}).Age(Time{Wall: wall}, 0); age != 0 || known {
		t.Errorf("two clocks without a name are one: %v", age)
	}
}
