package probes

import (
	"testing"
	"time"
)

func TestAProcessLeadsWhileItIsTrustedAndIsLiveWhileThatIsPutOffInTime(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	const overdue = 6 * time.Second
	for name, c := range map[string]struct {
		until   time.Time
		running bool
		want    standing
	}{
		"it campaigns":                           {time.Time{}, false, standing{leads: false, live: true}},
		"it was elected":                         {now.Add(18 * time.Second), false, standing{leads: true, live: true}},
		"CMD runs":                               {now.Add(18 * time.Second), true, standing{leads: true, live: true}},
		"renewals are about to be overdue":       {now.Add(overdue), true, standing{leads: true, live: true}},
		"renewals are overdue":                   {now.Add(overdue - 1), true, standing{leads: true, live: false}},
		"the last moment of trust":               {now.Add(1), true, standing{leads: true, live: false}},
		"trust ends":                             {now, true, standing{leads: false, live: false}},
		"it stood still, and CMD runs":           {now.Add(-time.Hour), true, standing{leads: false, live: false}},
		"CMD has ended, and it resigns":          {now, false, standing{leads: false, live: true}},
		"renewals are overdue, and nothing runs": {now.Add(1), false, standing{leads: true, live: true}},
	} {
		if got := standingAt(now, c.until, overdue, c.running); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
