package cli

import "os"

// openInherited fails: a Windows process has no numbered file descriptors.
func openInherited(number string) (*os.File, error) {
	return nil, usagef("--events %s: Windows has no file descriptors: name a file", number)
}
