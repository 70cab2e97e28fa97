//go:build linux

package postgres

import (
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPostgresIsThePinnedOneAndListensOnNoPort(t *testing.T) {
	pool := Run(t)
	for setting, want := range map[string]string{"server_version": Version, "listen_addresses": ""} {
		var got string
		if err := pool.QueryRow(t.Context(), "SELECT current_setting($1)", setting).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q (%v), want %q", setting, got, err, want)
		}
	}
}

func TestPostgresIsGoneWhenItWasStopped(t *testing.T) {
	s, err := start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.process.Ended():
	default:
		t.Error("its process is still there")
	}
	if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
		t.Errorf("its folder is still there (%v)", err)
	}
}

func TestAMissingNodeIsNamedWithHowToGetIt(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("LEASEHOLD_ENGINES", t.TempDir())
	_, err := Install(t.Context())
	for _, want := range []string{"npm is not on PATH", "node is not on PATH", "apt-get install npm"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want it to say %q", err, want)
		}
	}
}
