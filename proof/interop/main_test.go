//go:build linux

// Package interop tests leasehold against third-party programs: servers of the DynamoDB
// API, and the clients that can share a lock table with leasehold.
package interop

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
