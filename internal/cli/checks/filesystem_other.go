//go:build !linux && !darwin

package checks

import "errors"

// FileSystem is not known on this system.
func FileSystem(string) (kind string, free uint64, err error) {
	return "", 0, errors.ErrUnsupported
}
