//go:build !linux && !darwin

package checks

import "errors"

// FileSystem always returns errors.ErrUnsupported: on this operating system, leasehold
// cannot find out the kind of a file system.
func FileSystem(string) (kind string, err error) {
	return "", errors.ErrUnsupported
}
