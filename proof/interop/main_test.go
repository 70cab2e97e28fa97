//go:build linux

// Package interop tests leasehold against programs of others: servers of the
// DynamoDB API and the clients whose lock tables it shares.
package interop

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
