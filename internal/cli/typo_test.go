package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/cli/invocation"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// internals matches words of the source, which mean nothing to a user.
var internals = regexp.MustCompile(`strconv|boltstore|localdynamo|bbolt|smithy|pflag|cobra|context (deadline|canceled)|operation error|response error|RequestID|StatusCode|invalid argument|\*?types\.|\*errors|0x[0-9a-f]+|%!|<nil>|Post "|dial tcp|open [^ ]+: open|leasehold: leasehold`)

func envOf(vars map[string]string) invocation.Env {
	no := func() bool { return false }
	return invocation.Env{OnEC2: no, OnTrial: no, LookupEnv: func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}}
}

// typed runs the command in this process.
func typed(t *testing.T, vars map[string]string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	env := envOf(vars)
	for k, v := range vars {
		env.Environ = append(env.Environ, k+"="+v)
	}
	env.Args, env.Stdin, env.Stdout, env.Stderr, env.Now = args, strings.NewReader(""), &out, &errs, time.Now
	code = Main(env)
	return out.String(), errs.String(), code
}

func TestUsageErrorIsExplainedBeforeAnyRequest(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		lab.OK(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	noStore := write("notes.txt", strings.Repeat("these are notes\n", 1000))
	file := "--file=" + filepath.Join(dir, "locks.db")
	// The AWS settings of a real account must not influence this test.
	for name, v := range map[string]string{
		"HOME": dir, "AWS_CONFIG_FILE": write("config", "[profile here]\nregion = eu-west-1\n"), "AWS_SHARED_CREDENTIALS_FILE": write("credentials", ""),
		"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_PROFILE": "", "AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_DYNAMODB": "",
	} {
		t.Setenv(name, v)
	}
	aws := []string{"ls", "-t", "locks", "--region"}
	server := []string{"ls", "-t", "locks", "--region", "eu-west-1", "--endpoint-url"}
	run := []string{file, "run", "k"}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"table", "crate"}, `unknown command crate, did you mean create?: see leasehold table --help`},
		{append(aws, "moon-1"), `the Region "moon-1" (--region) is not an AWS Region: Regions look like eu-west-1 or us-gov-east-1; another server needs --endpoint-url`},
		{append(aws, "EU-WEST-1"), `the Region "EU-WEST-1" (--region) is not an AWS Region: use eu-west-1`},
		{append(aws, "eu-west-1a"), `"eu-west-1a" (--region) is an Availability Zone: use its Region, eu-west-1`},
		{append(aws, "eu west"), `the Region "eu west" (--region) is not an AWS Region`},
		{append(server, "ftp://host"), `--endpoint-url ftp://host: unknown scheme ftp: use http:// or https://, such as http://127.0.0.1:8000`},
		{append(server, "127.0.0.1:8000"), `--endpoint-url 127.0.0.1:8000 must begin with http:// or https://`},
		{append(server, "http://"), `--endpoint-url http:// names no host: use http:// or https://, such as http://127.0.0.1:8000`},
		{append(server, "http://127.0.0.1:99999"), `--endpoint-url http://127.0.0.1:99999: the port must be a number from 1 to 65535`},
		{append(server, "http://a b"), `--endpoint-url "http://a b" is not a URL: use http:// or https://, such as http://127.0.0.1:8000`},
		{append(server, "http://user:hunter2@127.0.0.1:9"), `--endpoint-url has an @: leave out the user and the password, which DynamoDB does not read: requests are signed with AWS credentials`},
		{append(server, "http://user:hunter2/ @127.0.0.1:9"), `--endpoint-url has an @`},
		{append(server, "user:hunter2@127.0.0.1:9"), `--endpoint-url has an @`},
		{append(server, "http://127.0.0.1:1/?x"), `--endpoint-url http://127.0.0.1:1/?x: leave out what follows ?`},
		{[]string{"ls", "-t", "my locks", "--region", "eu-west-1"}, `--table "my locks" is not the name of a table: those have letters, digits, _, - and ., 3 to 255 of them`},
		{[]string{"ls", "-t", "ab", "--region", "eu-west-1"}, `--table ab is not the name of a table: those have letters, digits, _, - and ., 3 to 255 of them`},
		{[]string{"ls", "-t", "ab", file}, `--table ab is not the name of a table: those have letters`},
		{[]string{"table", "create", "-t", "my locks", file}, `--table "my locks" is not the name of a table: those have letters`},
		{[]string{"ls", "-t", "arn:aws:s3:::x", "--region", "eu-west-1"}, `--table arn:aws:s3:::x is not the ARN of a table: those look like arn:aws:dynamodb:REGION:ACCOUNT:table/NAME`},
		{[]string{"ls", "-t", "arn:aws:dynamodb:eu-west-1:123456789012:table/locks", "--region", "us-east-1"}, `is in the Region eu-west-1, not us-east-1 (--region)`},
		{append(aws, "eu-west-1", "--failover", "eu-west-2,eu-west-2"), `--failover names the Region eu-west-2 again: name others`},
		{append(aws, "eu-west-1", "--failover", "eu-west-2,eu-west-1"), `--failover names the Region eu-west-1 again: name others`},
		{append(aws, "eu-west-1", "--failover", "eu-west-2,"), `--failover "eu-west-2," has an empty Region: separate by one comma`},
		{append(aws, "eu-west-1", "--failover", "moon-1"), `the Region "moon-1" (--failover) is not an AWS Region`},
		{append(server, "http://127.0.0.1:9", "--failover", "eu-west-2"), `--failover does not go with the endpoint http://127.0.0.1:9: leave out one`},
		{[]string{"ls", "-t", "arn:aws:dynamodb:eu-west-1:123456789012:table/locks", "--failover", "eu-west-2"}, `--failover needs the name of the table, not its ARN: use --table locks`},
		{[]string{"ls", file, "--failover", "eu-west-2"}, `--failover is for DynamoDB, but --file or LEASEHOLD_FILE names a local store`},
		{[]string{"ls", "-t", "locks", "--failover", ""}, `--failover is empty: give it a value, or leave it out`},
		{[]string{"ls", "-t", "locks", "--profile", "nobody"}, `no profile "nobody" in the AWS configuration: check --profile or AWS_PROFILE`},
		{append(run, "-w", "abc", "--", "true"), `--wait abc: use a duration, such as 30, 90s, 10m or 1h30m: see leasehold run --help`},
		{append(run, "-p", "x", "--", "true"), `--permits x: use a whole number: see leasehold run --help`},
		{append(run, "-p", "99999999999999999999", "--", "true"), `--permits 99999999999999999999: the number is too large`},
		{append(run, "-E", "1.5", "--", "true"), `--conflict-exit-code 1.5: use a whole number`},
		{append(run, "-s", "NONSENSE", "--", "true"), `unknown signal "NONSENSE"`},
		{append(run, "--data", "@/proc/none", "--", "true"), `--data: cannot read /proc/none: no such file`},
		{append(run, "--data", "@"+dir, "--", "true"), `is a directory`},
		{[]string{"ls", "--all=maybe", file}, `--all=maybe: use true or false, or --all alone`},
		{[]string{"ls", "--check=maybe", file}, `--check maybe: use a duration`},
		{append(run, "--sort-key", "x", "--", "true"), `layout native, as configured, has no sort key: leave out --sort-key or, if the table has one, name it with --attr sort=NAME`},
		{[]string{"run", "k", "--file", filepath.Join(dir, "mutex.db"), "--layout", "dyndb-mutex", "--sort-key", "x", "--", "true"}, `layout dyndb-mutex, as configured, has no sort key: leave out --sort-key`},
		{[]string{"ls", "--attr", "key", file}, `--attr key: use ROLE=NAME, such as key=id`},
		{[]string{"ls", "--attr", "key=" + strings.Repeat("a", 256), file}, `names of attributes have at most 255 bytes`},
		{[]string{"ls", "--file", dir}, dir + ` is a directory: name a file in it`},
		{[]string{"ls", "--file", "/dev/null"}, `/dev/null is not a regular file: name another file, which need not exist`},
		{[]string{"ls", "--file", "/proc/none/locks.db"}, `no store at /proc/none/locks.db: check --file and LEASEHOLD_FILE, or make one: leasehold table create --file /proc/none/locks.db`},
		{[]string{"ls", "--file", noStore}, noStore + ` is not a leasehold store: name another file, which need not exist`},
		{[]string{"ls", "--file", noStore + "/locks.db"}, `not a directory`},
		{[]string{"local", "--addr", "127.0.0.1:99999"}, `--addr 127.0.0.1:99999: the port must be a number from 0 to 65535`},
		{[]string{"local", "--addr", "127.0.0.1:http-alt-x"}, `the port must be a number from 0 to 65535`},
		{[]string{"local", "--file", dir}, dir + ` is a directory: name a file in it`},
	} {
		began := time.Now()
		_, errs, code := typed(t, map[string]string{"HOME": dir}, c.args...)
		if !strings.Contains(errs, c.want) || code != 2 && code != 125 {
			t.Errorf("%q: exit code %d: %s", c.args, code, errs)
		}
		if word := internals.FindString(strings.TrimPrefix(errs, "leasehold: ")); word != "" {
			t.Errorf("%q: a person gets to see %q: %s", c.args, word, errs)
		}
		if strings.Contains(errs, "hunter2") {
			t.Errorf("%q: the password is shown: %s", c.args, errs)
		}
		if strings.HasPrefix(c.args[0], "--file") && strings.Contains(errs, "DynamoDB") {
			t.Errorf("%q: there is no DynamoDB here: %s", c.args, errs)
		}
		if strings.Contains(errs, "still trying") || time.Since(began) > 2*time.Second {
			t.Errorf("%q: something was sent: %v: %s", c.args, time.Since(began), errs)
		}
		for _, line := range strings.Split(strings.TrimSpace(errs), "\n") {
			if !strings.HasPrefix(line, "leasehold: ") {
				t.Errorf("%q: %s", c.args, line)
			}
		}
	}
}

func TestEndpointWithPasswordIsRejectedAndNotPrinted(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "config")
	const url = "http://user:hunter2@127.0.0.1:9"
	lab.OK(t, os.WriteFile(config, []byte("[profile with]\nregion = eu-west-1\nendpoint_url = "+url+"\n"), 0o600))
	for name, v := range map[string]string{
		"HOME": dir, "AWS_CONFIG_FILE": config, "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y",
		"AWS_REGION": "eu-west-1", "AWS_PROFILE": "", "AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_DYNAMODB": "",
	} {
		t.Setenv(name, v)
	}
	for by, flags := range map[string][]string{
		"LEASEHOLD_ENDPOINT_URL": nil, "AWS_ENDPOINT_URL": nil, "AWS_ENDPOINT_URL_DYNAMODB": nil,
		"the profile's endpoint_url": {"--profile", "with"},
	} {
		t.Run(by, func(t *testing.T) {
			vars := map[string]string{"HOME": dir, "LEASEHOLD_TABLE": "locks"}
			if flags == nil {
				vars[by] = url
				t.Setenv(by, url)
			}
			events := filepath.Join(t.TempDir(), "events")
			for _, args := range [][]string{{"ls", "-v"}, {"run", "--json", "-w", "1s", "--events", events, "k", "--", "true"}, {"doctor"}} {
				out, errs, code := typed(t, vars, append(flags, args...)...)
				wrote, _ := os.ReadFile(events)
				if text := out + errs + string(wrote); strings.Contains(text, "hunter2") || !strings.Contains(errs, by+" has an @: ") || code != 2 && code != 125 {
					t.Errorf("%v: exit code %d: %s", args, code, text)
				}
			}
		})
	}
}
