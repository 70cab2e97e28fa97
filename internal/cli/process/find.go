package process

import (
	"errors"
	"io/fs"
	"os/exec"

	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// Find finds CMD. It is called before the wait for KEY, which would be in vain if there
// is no CMD.
func Find(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", StartError(name, err)
	}
	return path, nil
}

// StartError says why CMD could not be started, with the exit code for that.
func StartError(name string, err error) error {
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return failure.Exit(failure.CodeNoCommand, misuse.Errorf("%s: command not found", visible.Name(name)))
	case errors.Is(err, exec.ErrDot):
		return failure.Exit(failure.CodeNoCommand, misuse.Errorf("%s is only in the current directory: call it ./%s", visible.Name(name), name))
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	var look *exec.Error
	if errors.As(err, &look) {
		err = look.Err
	}
	return failure.Exit(failure.CodeNotExec, misuse.Errorf("%s cannot be executed: %v", visible.Name(name), err))
}
