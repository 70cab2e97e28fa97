package layouttest

import "testing"

// check is one claim, held on a key of its own.
type check struct {
	claim string
	hold  func(e *env)
	exact bool // needs an engine where time is virtual
}

// checks are those of every subject, in the order they run.
func checks() []check {
	var all []check
	for _, subject := range [][]check{
		grantChecks(), waitChecks(), deadChecks(), trustChecks(), releaseChecks(), breakChecks(), replyChecks(),
		contentChecks(), listChecks(), damageChecks(), oddChecks(), capabilityChecks(), faultChecks(), crowdChecks(),
	} {
		all = append(all, subject...)
	}
	return all
}

// Exercise holds the layout of s to every claim on an engine.
func Exercise(t *testing.T, on Engine, s Subject) {
	t.Helper()
	for _, c := range checks() {
		if c.exact && !on.Virtual {
			continue
		}
		t.Run(c.claim, func(t *testing.T) {
			on.Run(t, func(t *testing.T, connect Connect) {
				c.hold(newEnv(t, on, s, connect))
			})
		})
	}
}
