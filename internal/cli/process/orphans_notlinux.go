//go:build !linux

package process

import "os"

func notifyDeaths(chan<- os.Signal) {}
func ignoreDeaths(chan<- os.Signal) {}

func adoptOrphans() {}

func reapOrphan(int) {}
