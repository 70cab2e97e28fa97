package checks

import (
	"errors"
	"io/fs"
)

// ownerOf is not known on Windows.
func ownerOf(fs.FileInfo) string { return "" }

// inodeOf is not known on Windows.
func inodeOf(string) (uint64, error) { return 0, errors.ErrUnsupported }
