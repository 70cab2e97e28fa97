// Package checks is what doctor and table check ask: each check asks one thing and
// returns what it found, in words and in figures, and what to do (Finding); a Report
// prints that. It knows no flag; who runs the checks chooses which are asked.
//
// A finding that is not ok says so and the checks go on, so that one run shows all that
// is wrong, but for two: after keys or a status that do not fit, requests would fail for
// that alone (Last), and after a request that nobody answers there is nothing to find
// (Failed). A request that is lost or throttled is sent three times before that.
//
// What is written is one key (package scratch), and it is deleted again whatever
// happens: a clean-up that failed is a finding of its own.
package checks

import (
	"context"
	"time"

	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/decide"
)

// State is the result of a check.
type State string

// Values of State.
const (
	OK      State = "ok"
	Warning State = "warning"
	Fatal   State = "fatal"   // locks would fail or be unsafe
	Unknown State = "unknown" // it cannot be found out, and that may be as it should
)

// cleanUp is the check that says that something is left in the table.
const cleanUp = "clean-up"

// Finding is what a check has found: one line.
type Finding struct {
	Check  string         `json:"check"`
	State  State          `json:"state"`
	What   string         `json:"what"`
	Do     string         `json:"do,omitempty"`
	Values map[string]any `json:"values,omitempty"`

	Err    error `json:"-"` // why: its text comes after What
	Last   bool  `json:"-"` // nothing else can be asked
	Failed bool  `json:"-"` // likewise, as it could not be found out
}

// failed is the finding that something could not be found out.
func failed(check string, err error) Finding {
	return Finding{Check: check, State: Fatal, Err: err, Failed: true}
}

// Check asks one thing.
type Check struct {
	does string // while it runs
	ask  func(context.Context) []Finding
}

// tries is how many times one request is sent.
const tries = 3

// patiently sends a request until it is answered, a few times: one packet that was lost,
// or one request that was throttled, says little.
func patiently(ctx context.Context, send func(context.Context) error) error {
	for n := 1; ; n++ {
		within, cancel := context.WithTimeout(ctx, attempts.Limit)
		err := send(within)
		cancel()
		cause := decide.Classify(err).Cause
		if cause != decide.Unreachable && cause != decide.Busy || n == tries {
			return err
		}
		select {
		case <-time.After(time.Duration(n) * 100 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}
