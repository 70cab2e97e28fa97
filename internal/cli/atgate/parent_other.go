//go:build unix && !linux

package atgate

func dieWithParent() {}
