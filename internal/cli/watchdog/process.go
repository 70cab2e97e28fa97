package watchdog

import (
	"os"
	"strconv"
	"syscall"
	"time"

	_ "github.com/leasehold-go/leasehold/internal/cli/ownrights" // initialized before any code here reads the arguments
)

// Args returns the arguments of a watchdog process. It reads orders from its standard
// input, and writes reports to its standard output.
func Args(sig syscall.Signal, grace time.Duration, d Descent) []string {
	return []string{
		"leasehold", "watchdog", "--", strconv.Itoa(int(sig)), strconv.FormatInt(int64(grace), 10),
		strconv.Itoa(d.Supervisor), strconv.FormatBool(d.GroupOnly),
	}
}

func init() {
	if len(os.Args) != len(Args(0, 0, Descent{})) || os.Args[0] != "leasehold" || os.Args[1] != "watchdog" || os.Args[2] != "--" {
		return
	}
	sig, err := strconv.Atoi(os.Args[3])
	grace, noGrace := strconv.ParseInt(os.Args[4], 10, 64)
	supervisor, nobody := strconv.Atoi(os.Args[5])
	groupOnly, neither := strconv.ParseBool(os.Args[6])
	if err != nil || noGrace != nil || nobody != nil || neither != nil {
		return // a user typed this command, which does not exist
	}
	ignoreSignals()
	Run(os.Stdin, os.Stdout, syscall.Signal(sig), time.Duration(grace), Descent{
		Supervisor: supervisor, Watchdog: os.Getpid(), GroupOnly: groupOnly,
	})
	os.Exit(0)
}
