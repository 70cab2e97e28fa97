//go:build !unix

package plainfile

import (
	"io/fs"
	"os"
)

const noFollow = 0

// Another never finds another user's directory: it always returns "". On this system users do not
// share directories as they do on Unix.
func Another(string) string { return "" }

// flock does nothing on this system. If two processes call Swap for the same file at the same
// moment, both calls may succeed.
func flock(*os.File) error { return nil }

func ownerName(fs.FileInfo) string          { return "another user" }
func names(fs.FileInfo) uint64              { return 1 }
func closed(fs.FileInfo) bool               { return true }
func mayPass(_, _ fs.FileInfo) bool         { return true }
func mayLead(_, _ fs.FileInfo) bool         { return true }
func mayOwn(_, _ fs.FileInfo, _ Owner) bool { return true }
