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
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/smithy-go"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/attempts"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/say"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/durations"
	"github.com/leasehold-go/leasehold/internal/visible"
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
		case <-time.After(durations.Times(100*time.Millisecond, int64(n))):
		case <-ctx.Done():
			return err
		}
	}
}

// Report prints findings, and makes an exit code of them.
type Report struct {
	Say    *say.Messages
	Out    *say.Output
	JSON   bool
	Where  string // the table is
	Strict bool   // what is not known is no answer, and what failed is an error

	worst  State // "", Warning or Fatal
	failed bool  // something could not be found out
	err    error // of what failed, or of the output
}

// Run asks one check after another. It reports whether more can be asked.
func (r *Report) Run(ctx context.Context, list []Check) bool {
	for _, c := range list {
		if r.Say.Rewrites() {
			r.Say.Rewrite(c.does)
		}
		more := true
		for _, f := range c.ask(ctx) {
			r.Found(ctx, f)
			more = more && !f.Last && !f.Failed
		}
		if !more {
			return false
		}
	}
	return true
}

// Found prints a finding as soon as it is known. After a signal requests fail, and say
// nothing.
func (r *Report) Found(ctx context.Context, f Finding) {
	if r.err != nil || f.Check != cleanUp && failure.Interrupted(context.Cause(ctx)) != nil {
		return
	}
	if f.State == Fatal || f.State == Warning && r.worst == "" {
		r.worst = f.State
	}
	r.failed = r.failed || f.Failed || r.Strict && f.State == Unknown
	if r.Strict && f.Failed {
		r.err = f.Err
		return
	}
	r.err = r.print(f)
}

// print writes a line to standard output.
func (r *Report) print(f Finding) error {
	if f.Err != nil {
		f.What = strings.TrimPrefix(f.What+": "+r.why(f.Err), ": ")
		if f.Failed {
			f.Do = strings.TrimPrefix(failure.Remedy(f.Err, r.Where), ": ")
		}
	}
	f.What, f.Do = visible.OneLine(f.What), visible.OneLine(f.Do)
	r.Say.Clear()
	switch {
	case r.JSON:
		return json.NewEncoder(r.Out).Encode(f)
	case r.Out.Terminal:
		what := f.What
		if f.Do != "" {
			what += ": " + f.Do
		}
		state := fmt.Sprintf("%-7s", f.State)
		text := wording.Fill(fmt.Sprintf("%s  %-18s  ", state, f.Check), what, r.Out.Columns())
		return r.Out.Show(append(colours[f.State].Of(state), strings.TrimPrefix(text, state))...)
	}
	return r.Out.Show(say.Tabbed(string(f.State), f.Check, f.What, f.Do), "\n")
}

// colours mark what is not ok.
var colours = map[State]say.Colour{Fatal: say.Red, Warning: say.Yellow}

// why is the text of an error. Of one of the SDK it is the reason alone: the line says
// what was asked.
func (r *Report) why(err error) string {
	var ours *leasehold.OpError
	var sdk *smithy.OperationError
	if errors.As(err, &sdk) && !errors.As(err, &ours) {
		return failure.Reason(err)
	}
	return failure.Text(err, r.Where)
}

// Verdict makes an exit code of the findings.
func (r *Report) Verdict(ctx context.Context) error {
	switch {
	case failure.Interrupted(context.Cause(ctx)) != nil:
		return failure.Interrupted(context.Cause(ctx))
	case r.err != nil:
		return r.err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case r.failed:
		return failure.Exit(failure.CodeTrouble, nil)
	case r.worst != "":
		return failure.Exit(failure.CodeNo, nil)
	}
	return nil
}
