//go:build !linux && !darwin

package checks

import "errors"

// FileSystem is not known on this system.
func FileSystem(string) (kind string, err error) {
	return "", errors.ErrUnsupported
}
