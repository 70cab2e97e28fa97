//go:build !linux

package cli

import "os"

// seesDescent: orphans are init's, and only those in CMD's group are seen.
const seesDescent = false

func notifyDeaths(chan<- os.Signal) {}
func ignoreDeaths(chan<- os.Signal) {}

func adoptOrphans() {}

func reapOrphan(int) {}

func killProcess(int) {}

// all returns CMD's group as one process, if any of it runs. CMD itself was
// reaped when it ended.
func (d descent) all(group int) ([]process, error) {
	if !groupRuns(group) {
		return nil, nil
	}
	return []process{{PID: group, group: group, whole: true}}, nil
}

func withEnvironment(string) []process { return nil }
