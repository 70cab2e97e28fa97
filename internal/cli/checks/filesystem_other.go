//go:build !linux && !darwin

package checks

import "errors"

// FileSystem returns an error: it is not implemented on this system.
func FileSystem(string) (kind string, err error) {
	return "", errors.ErrUnsupported
}
