package arguments

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/leasehold-go/leasehold/internal/cli/wording"
)

// Duration is the value of a flag. It accepts the format of time.ParseDuration, and a bare
// number of seconds as timeout(1) and flock(1) do.
type Duration struct {
	D   *time.Duration
	Min time.Duration
}

func (f Duration) String() string {
	if f.D == nil || *f.D == 0 {
		return ""
	}
	return wording.Duration(*f.D)
}

// Type returns a name that the help uses to explain durations once.
func (Duration) Type() string { return "duration" }

// Set parses the value.
func (f Duration) Set(s string) error {
	d, err := wording.ParseDuration(s)
	if err != nil {
		return err
	}
	if d < f.Min {
		return fmt.Errorf("use at least %s", wording.Duration(f.Min))
	}
	*f.D = d
	return nil
}

// Check adds --check, or --check=DURATION, the longest time that the records are observed.
// The default is three default leases, so that a holder with a lease of hours does not make
// the user wait.
func Check(fl *pflag.FlagSet, d *time.Duration) {
	fl.Var(Duration{D: d}, "check", "observe for `DURATION` at most, and show which holders are live, dead or unknown; --check=0: until all are known")
	fl.Lookup("check").NoOptDefVal = wording.Duration(time.Minute)
}
