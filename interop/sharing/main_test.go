//go:build linux

// Package sharing plays leasehold and the lock libraries of others on one table:
// real processes, real servers, killed and paused. make interop shows it as a
// table.
package sharing

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
