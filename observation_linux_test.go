package leasehold_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// observeVersion is set where this binary runs as another process, which prints an
// observation of the lock that its clock saw first just now.
const observeVersion = "LEASEHOLD_TEST_OBSERVE_VERSION"

func TestAnObservationOfAnotherTimeNamespaceMakesNobodyDead(t *testing.T) {
	w := lab.New(t)
	c, _ := w.Client(lab.Config())
	if version := os.Getenv(observeVersion); version != "" {
		o := leasehold.Observation{Key: leasehold.Key{Partition: "job"}, Version: version, Lease: 20 * time.Second, Since: time.Now()}
		b, err := json.Marshal(leasehold.BootObservation(c, o, 0))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = os.Stdout.Write(append(b, '\n'))
		return
	}
	lock := w.Acquire(c, "job", leasehold.WithoutRenewal())
	run := func(wrap ...string) (leasehold.Observation, error) {
		cmd := exec.Command(wrap[0], append(wrap[1:], os.Args[0], "-test.run=^"+t.Name()+"$")...)
		cmd.Env = append(os.Environ(), observeVersion+"="+lock.Record().Version)
		out, err := cmd.CombinedOutput()
		var o leasehold.Observation
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		} else {
			line, _, _ := strings.Cut(string(out), "\n")
			err = json.Unmarshal([]byte(line), &o)
		}
		return o, err
	}
	// By two clocks: one that has shown more since the boot, and one that has
	// shown less, by which this machine's would make it a minute old.
	for _, offset := range []string{"100000", "-60"} {
		o, err := run("unshare", "--map-root-user", "--time", "--boottime", offset, "--fork")
		if err != nil {
			t.Skipf("needs unshare(1) and leave to make a time namespace: %v", err)
		}
		other, _ := w.Client(lab.Config())
		if err := other.ImportObservations(0, o); err != nil {
			t.Fatal(err)
		}
		if _, err := other.TryAcquire(t.Context(), "job"); !errors.Is(err, leasehold.ErrHeld) {
			t.Errorf("a live holder, seen by a clock set off by %ss: %v", offset, err)
		}
	}
	w.Release(lock)
}
