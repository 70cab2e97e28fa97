package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func envOf(vars map[string]string) Env {
	return Env{LookupEnv: func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}}
}

func TestWhereTheLocksAre(t *testing.T) {
	home := t.TempDir()
	for _, c := range []struct {
		name    string
		flags   globalFlags
		env     map[string]string
		granted string
		onEC2   bool
		machine string
		table   string
		file    string
		err     string
	}{
		{name: "nothing is said", table: "leasehold", file: home + "/.local/state/leasehold/locks.db"},
		{name: "a state directory", env: map[string]string{"XDG_STATE_HOME": "/s"}, table: "leasehold", file: "/s/leasehold/locks.db"},
		{name: "a relative one does not count", env: map[string]string{"XDG_STATE_HOME": "s"}, table: "leasehold", file: home + "/.local/state/leasehold/locks.db"},
		{name: "a table", flags: globalFlags{table: "t"}, table: "t"},
		{name: "a file", flags: globalFlags{file: "/f"}, table: "leasehold", file: "/f"},
		{name: "a table in a file", flags: globalFlags{file: "/f", table: "t"}, table: "t", file: "/f"},
		{name: "a table in the environment", env: map[string]string{"LEASEHOLD_TABLE": "t"}, table: "t"},
		{name: "a file in the environment", env: map[string]string{"LEASEHOLD_FILE": "/f", "AWS_REGION": "x"}, table: "leasehold", file: "/f"},
		{name: "both in the environment", env: map[string]string{"LEASEHOLD_FILE": "/f", "LEASEHOLD_TABLE": "t"}, err: "LEASEHOLD_TABLE and LEASEHOLD_FILE are both set"},
		{name: "both as run sets them", env: map[string]string{
			"LEASEHOLD_FILE": "/f", "LEASEHOLD_TABLE": "t", "LEASEHOLD_HELD": `[{"key":"k","table":"t","store":"/f"}]`,
		}, table: "t", file: "/f"},
		{name: "a table beside what run sets", env: map[string]string{
			"LEASEHOLD_FILE": "/f", "LEASEHOLD_TABLE": "t", "LEASEHOLD_HELD": `[{"key":"k","table":"leasehold","store":"/f"}]`,
		}, err: "LEASEHOLD_TABLE and LEASEHOLD_FILE are both set"},
		{name: "an empty table", env: map[string]string{"LEASEHOLD_TABLE": ""}, err: "LEASEHOLD_TABLE is set but empty"},
		{name: "an empty file beside a table", env: map[string]string{"LEASEHOLD_TABLE": "t", "LEASEHOLD_FILE": ""}, err: "LEASEHOLD_FILE is set but empty"},
		{name: "a flag sets what is empty aside", flags: globalFlags{table: "t"}, env: map[string]string{"LEASEHOLD_TABLE": ""}, table: "t"},
		{name: "a table is required", env: map[string]string{"LEASEHOLD_REQUIRE_TABLE": "1"}, err: "no table: LEASEHOLD_REQUIRE_TABLE is set"},
		{name: "a table is required, a file there", env: map[string]string{"LEASEHOLD_REQUIRE_TABLE": "1", "LEASEHOLD_FILE": "/f"}, err: "LEASEHOLD_REQUIRE_TABLE is set, but LEASEHOLD_FILE"},
		{name: "a table is required and there", env: map[string]string{"LEASEHOLD_REQUIRE_TABLE": "1", "LEASEHOLD_TABLE": "t"}, table: "t"},
		{name: "a table is required and a grant names it", env: map[string]string{"LEASEHOLD_REQUIRE_TABLE": "1"}, granted: "t", table: "t"},
		{name: "a table is not required", env: map[string]string{"LEASEHOLD_REQUIRE_TABLE": "0", "LEASEHOLD_FILE": "/f"}, table: "leasehold", file: "/f"},
		{name: "an instance of EC2", onEC2: true, err: "no table: this machine is an EC2 instance"},
		{name: "an instance of EC2, a file", onEC2: true, env: map[string]string{"LEASEHOLD_FILE": "/f"}, table: "leasehold", file: "/f"},
		{name: "an instance of EC2 that is not asked", onEC2: true, env: map[string]string{"AWS_EC2_METADATA_DISABLED": "true"}, table: "leasehold", file: home + "/.local/state/leasehold/locks.db"},
		{name: "a machine's store that is there", machine: home, table: "leasehold", file: home + "/locks.db"},
		{name: "a machine's store that is not there", machine: home + "/none", table: "leasehold", file: home + "/.local/state/leasehold/locks.db"},
		{name: "a machine's store, no home", machine: home, env: map[string]string{"HOME": ""}, table: "leasehold", file: home + "/locks.db"},
		{name: "a machine's store and AWS", machine: home, env: map[string]string{"AWS_REGION": "x"}, err: "AWS_REGION is set"},
		{name: "the flag sets the file aside", flags: globalFlags{table: "t"}, env: map[string]string{"LEASEHOLD_FILE": "/f"}, table: "t"},
		{name: "the flag sets the table aside", flags: globalFlags{file: "/f"}, env: map[string]string{"LEASEHOLD_TABLE": "t"}, table: "leasehold", file: "/f"},
		{name: "an AWS setting", env: map[string]string{"AWS_REGION": "x"}, err: "AWS_REGION is set"},
		{name: "an older one", env: map[string]string{"AWS_DEFAULT_REGION": "x"}, err: "AWS_DEFAULT_REGION is set"},
		{name: "keys", env: map[string]string{"AWS_ACCESS_KEY_ID": "x"}, err: "AWS_ACCESS_KEY_ID is set"},
		{name: "a container", env: map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": "x"}, err: "AWS_CONTAINER_CREDENTIALS_FULL_URI is set"},
		{name: "a web identity", env: map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": "x"}, err: "AWS_WEB_IDENTITY_TOKEN_FILE is set"},
		{name: "an AWS flag", flags: globalFlags{region: "x"}, err: "--region is set"},
		{name: "an AWS flag and a file", flags: globalFlags{profile: "x", file: "/f"}, err: "--profile is for DynamoDB"},
		{name: "a grant names the table", env: map[string]string{"AWS_REGION": "x"}, granted: "t", table: "t"},
		{name: "a grant of the local store", granted: "leasehold", table: "leasehold", file: home + "/.local/state/leasehold/locks.db"},
		{name: "no home", env: map[string]string{"HOME": ""}, err: "neither HOME nor XDG_STATE_HOME"},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := map[string]string{"HOME": home}
			for name, v := range c.env {
				env[name] = v
			}
			where := envOf(env)
			where.OnEC2, where.MachineDir = func() bool { return c.onEC2 }, c.machine
			p, err := choosePlace(c.flags, where, c.granted)
			switch {
			case c.err != "":
				if err == nil || !strings.Contains(err.Error(), c.err) || kindOf(err) != "usage" {
					t.Errorf("error %v", err)
				}
			case err != nil:
				t.Error(err)
			case p.table != c.table || p.file != c.file:
				t.Errorf("table %q in %q", p.table, p.file)
			}
		})
	}
}

func TestAnInstanceOfEC2IsKnownByItsHardware(t *testing.T) {
	for _, c := range []struct {
		file, content string
		want          bool
	}{
		{"class/dmi/id/sys_vendor", "Amazon EC2\n", true},
		{"class/dmi/id/board_vendor", "Amazon EC2\n", true},
		{"hypervisor/uuid", "ec2e1916-9099-7caf-fd21-012345abcdef\n", true},
		{"hypervisor/uuid", "4b2e1916-9099-7caf-fd21-012345abcdef\n", false},
		{"class/dmi/id/sys_vendor", "QEMU\n", false},
	} {
		sys := t.TempDir()
		path := filepath.Join(sys, c.file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := onEC2(sys); got != c.want {
			t.Errorf("%s says %q: %v", c.file, c.content, got)
		}
	}
}

func TestDurationsAreReadAsPeopleWriteThem(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"90": 90 * time.Second, "0": 0, "1.5": 1500 * time.Millisecond, "10m": 10 * time.Minute, "1h30m": 90 * time.Minute, "2d": 48 * time.Hour,
	} {
		if got, err := parseDuration(in); err != nil || got != want {
			t.Errorf("%q: %v, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "soon", "-1", "-5s", "1e99", "NaN"} {
		if got, err := parseDuration(in); err == nil {
			t.Errorf("%q: %v", in, got)
		}
	}
	for want, in := range map[string]time.Duration{"20s": 20 * time.Second, "10m": 10 * time.Minute, "1h": time.Hour, "1h30m": 90 * time.Minute, "1m30s": 90 * time.Second} {
		if got := shortDuration(in); got != want {
			t.Errorf("%v: %q", in, got)
		}
	}
	for want, in := range map[string]time.Duration{"0s": -time.Second, "59s": 59 * time.Second, "3m12s": 192 * time.Second, "5h3m": 5*time.Hour + 3*time.Minute, "6d5h": 149 * time.Hour} {
		if got := age(in); got != want {
			t.Errorf("%v: %q", in, got)
		}
	}
}

func TestSignalsAreReadByNameAndNumber(t *testing.T) {
	for _, in := range []string{"TERM", "SIGTERM", "term", "15"} {
		if got, err := parseSignal(in); err != nil || int(got) != 15 {
			t.Errorf("%q: %v, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "NONSENSE", "0", "65", "-1"} {
		if got, err := parseSignal(in); err == nil {
			t.Errorf("%q: %v", in, got)
		}
	}
}

func TestWhatWouldDisturbATerminalIsQuoted(t *testing.T) {
	for in, want := range map[string]string{
		"deploy/prod": "deploy/prod", "ключ ☂": "ключ ☂", "a\tb": `"a\tb"`, "\x1b[31mred": `"\x1b[31mred"`, "": `""`, "a\nb": `"a\nb"`,
	} {
		if got := printable(in); got != want {
			t.Errorf("%q: %s", in, got)
		}
	}
}
