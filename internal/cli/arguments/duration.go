package arguments

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/leasehold-go/leasehold/internal/cli/wording"
)

// Duration is the value of a flag. It accepts what time.ParseDuration does, and a bare
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

// Type is what the help looks for, to say once what a duration is.
func (Duration) Type() string { return "duration" }

// Set reads what was given.
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

// DefaultCheckFor is how long ls and get --check observe at most: three default
// leases, so that a holder with a lease of hours keeps nobody waiting.
const DefaultCheckFor = time.Minute

// CheckFor is --for, of commands that have --check.
func CheckFor(fl *pflag.FlagSet, d *time.Duration) {
	*d = DefaultCheckFor
	fl.Var(Duration{D: d}, "for", "with --check, observe at most `DURATION`; a holder not known by then is unknown; 0: until all are known")
}
