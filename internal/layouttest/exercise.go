package layouttest

import "testing"

// check tests one claim, under a key that no other check uses.
type check struct {
	claim string
	hold  func(e *env)
	exact bool // whether the check needs virtual time
}

// checks returns all checks, in the order in which they run.
func checks() []check {
	var all []check
	for _, subject := range [][]check{
		grantChecks(), waitChecks(), deadChecks(), trustChecks(), releaseChecks(), breakChecks(), replyChecks(),
		contentChecks(), listChecks(), damageChecks(), oddChecks(), capabilityChecks(), faultChecks(), contentionChecks(),
	} {
		all = append(all, subject...)
	}
	return all
}

// Exercise runs all checks for the layout of s on an engine.
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
