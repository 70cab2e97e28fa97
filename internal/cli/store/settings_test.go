package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/smithy-go"

	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/requests"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/lease"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

func TestStoreIsChosenByFlagOrEnvironmentOrDefault(t *testing.T) {
	home := t.TempDir()
	for _, c := range []struct {
		name    string
		flags   Settings
		env     map[string]string
		granted string
		outer   [2]string // LEASEHOLD_TABLE and LEASEHOLD_FILE as an outer leasehold run has set them
		machine string
		trial   bool
		table   string
		file    string
		err     string
	}{
		{name: "no setting", table: "leasehold", file: home + "/.local/state/leasehold/locks.db"},
		{name: "a state directory", env: map[string]string{"XDG_STATE_HOME": "/s"}, table: "leasehold", file: "/s/leasehold/locks.db"},
		{name: "a relative state directory is ignored", env: map[string]string{"XDG_STATE_HOME": "s"}, table: "leasehold", file: home + "/.local/state/leasehold/locks.db"},
		{name: "a table", flags: Settings{Table: "t"}, table: "t"},
		{name: "a file", flags: Settings{File: "/f"}, table: "leasehold", file: "/f"},
		{name: "a file whose path JSON cannot contain", flags: Settings{File: "/\xff"}, err: "the path is not UTF-8"},
		{name: "a home that JSON cannot contain", env: map[string]string{"HOME": "/\xff"}, err: "use --table, or another --file"},
		{name: "a table in a file", flags: Settings{File: "/f", Table: "t"}, table: "t", file: "/f"},
		{name: "a table in the environment", env: map[string]string{"LEASEHOLD_TABLE": "t"}, table: "t"},
		{name: "a file in the environment", env: map[string]string{"LEASEHOLD_FILE": "/f", "AWS_REGION": "x"}, table: "leasehold", file: "/f"},
		{name: "both in the environment", env: map[string]string{"LEASEHOLD_FILE": "/f", "LEASEHOLD_TABLE": "t"}, err: "LEASEHOLD_TABLE and LEASEHOLD_FILE are both set"},
		{name: "both, as an outer run has set them", env: map[string]string{
			"LEASEHOLD_FILE": "/f", "LEASEHOLD_TABLE": "t",
		}, outer: [2]string{"t", "/f"}, table: "t", file: "/f"},
		{name: "both, but an outer run has set only the file", env: map[string]string{
			"LEASEHOLD_FILE": "/f", "LEASEHOLD_TABLE": "t",
		}, outer: [2]string{DefaultTable, "/f"}, err: "LEASEHOLD_TABLE and LEASEHOLD_FILE are both set"},
		{name: "an empty table", env: map[string]string{"LEASEHOLD_TABLE": ""}, err: "LEASEHOLD_TABLE is set but empty"},
		{name: "an empty file beside a table", env: map[string]string{"LEASEHOLD_TABLE": "t", "LEASEHOLD_FILE": ""}, err: "LEASEHOLD_FILE is set but empty"},
		{name: "an empty AWS setting for leasehold only", env: map[string]string{"LEASEHOLD_REGION": ""}, err: "LEASEHOLD_REGION is set but empty"},
		{name: "a flag overrides an empty variable", flags: Settings{Table: "t"}, env: map[string]string{"LEASEHOLD_TABLE": ""}, table: "t"},
		{name: "a table is required", env: map[string]string{"LEASEHOLD_REQUIRE_TABLE": "1"}, err: "no table: LEASEHOLD_REQUIRE_TABLE is set"},
		{name: "a table is required, but a file is set", env: map[string]string{"LEASEHOLD_REQUIRE_TABLE": "1", "LEASEHOLD_FILE": "/f"}, err: "LEASEHOLD_REQUIRE_TABLE is set, but LEASEHOLD_FILE"},
		{name: "a table is required and set", env: map[string]string{"LEASEHOLD_REQUIRE_TABLE": "1", "LEASEHOLD_TABLE": "t"}, table: "t"},
		{name: "a table is required and a grant names it", env: map[string]string{"LEASEHOLD_REQUIRE_TABLE": "1"}, granted: "t", table: "t"},
		{name: "a table is not required", env: map[string]string{"LEASEHOLD_REQUIRE_TABLE": "0", "LEASEHOLD_FILE": "/f"}, table: "leasehold", file: "/f"},
		{name: "a machine's store that exists", machine: home, table: "leasehold", file: home + "/locks.db"},
		{name: "a machine's store that does not exist", machine: home + "/none", table: "leasehold", file: home + "/.local/state/leasehold/locks.db"},
		{name: "a machine's store, no home", machine: home, env: map[string]string{"HOME": ""}, table: "leasehold", file: home + "/locks.db"},
		{name: "a machine's store and AWS", machine: home, env: map[string]string{"AWS_REGION": "x"}, err: "AWS_REGION is set"},
		{name: "the flag for the table overrides the file", flags: Settings{Table: "t"}, env: map[string]string{"LEASEHOLD_FILE": "/f"}, table: "t"},
		{name: "the flag for the file overrides the table", flags: Settings{File: "/f"}, env: map[string]string{"LEASEHOLD_TABLE": "t"}, table: "leasehold", file: "/f"},
		{name: "an AWS setting", env: map[string]string{"AWS_REGION": "x"}, err: "AWS_REGION is set"},
		{name: "an older AWS setting", env: map[string]string{"AWS_DEFAULT_REGION": "x"}, err: "AWS_DEFAULT_REGION is set"},
		{name: "an AWS setting for leasehold only", env: map[string]string{"LEASEHOLD_PROFILE": "x"}, err: "LEASEHOLD_PROFILE is set"},
		{name: "a table is required despite an AWS setting", env: map[string]string{"AWS_REGION": "x", "LEASEHOLD_REQUIRE_TABLE": "1"}, err: "LEASEHOLD_REQUIRE_TABLE"},
		{name: "a table and an AWS setting", env: map[string]string{"AWS_REGION": "x", "LEASEHOLD_TABLE": "t"}, table: "t"},
		{name: "AWS access keys", env: map[string]string{"AWS_ACCESS_KEY_ID": "x"}, err: "AWS_ACCESS_KEY_ID is set"},
		{name: "AWS container credentials", env: map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": "x"}, err: "AWS_CONTAINER_CREDENTIALS_FULL_URI is set"},
		{name: "an AWS web identity", env: map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": "x"}, err: "AWS_WEB_IDENTITY_TOKEN_FILE is set"},
		{name: "an AWS flag", flags: Settings{Region: "x"}, err: "--region is set"},
		{name: "an AWS flag and a file", flags: Settings{Profile: "x", File: "/f"}, err: "--profile is for DynamoDB"},
		{name: "a grant names the table", env: map[string]string{"AWS_REGION": "x"}, granted: "t", table: "t"},
		{name: "a grant of the local store", granted: "leasehold", table: "leasehold", file: home + "/.local/state/leasehold/locks.db"},
		{name: "on trial with an AWS setting", trial: true, env: map[string]string{"AWS_REGION": "x"}, table: "leasehold", file: home + "/.local/state/leasehold/locks.db"},
		{name: "on trial with an AWS flag", trial: true, flags: Settings{Region: "x"}, err: "--region is set"},
		{name: "on trial with an AWS setting for leasehold only", trial: true, env: map[string]string{"LEASEHOLD_PROFILE": "x"}, err: "LEASEHOLD_PROFILE is set"},
		{name: "on trial, and a table is required", trial: true, env: map[string]string{"AWS_REGION": "x", "LEASEHOLD_REQUIRE_TABLE": "1"}, err: "LEASEHOLD_REQUIRE_TABLE"},
		{name: "on trial, and a grant names the table", trial: true, env: map[string]string{"AWS_REGION": "x"}, granted: "t", table: "t"},
		{name: "no home", env: map[string]string{"HOME": ""}, err: "neither HOME nor XDG_STATE_HOME"},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := map[string]string{"HOME": home}
			for name, v := range c.env {
				env[name] = v
			}
			where := c.flags
			where.LookupEnv = func(name string) (string, bool) {
				v, ok := env[name]
				return v, ok
			}
			where.MachineDir, where.OnTrial = c.machine, func() bool { return c.trial }
			where.SetByRun = func(table, file string) bool { return c.outer == [2]string{table, file} }
			p, err := where.Place(c.granted)
			if c.err != "" {
				lab.WantText(t, "Place", err, c.err)
				lab.WantAs[*failure.MisuseError](t, "Place", err)
				return
			}
			lab.OK(t, err)
			lab.Want(t, "table and file", [2]string{p.Table, p.File}, [2]string{c.table, c.file})
		})
	}
}

func TestRegionSourceCanBeFlagOrVariableOrProfileOrARN(t *testing.T) {
	profile := aws.Config{Region: "eu-west-1", ConfigSources: []any{config.EnvConfig{}, config.SharedConfig{Profile: "prod", Region: "eu-west-1"}}}
	type variant struct {
		flags Settings
		env   map[string]string
		aws   aws.Config
		want  string
	}
	lab.Variants(t, map[string]variant{
		"flag":           {flags: Settings{Region: "eu-west-1"}, env: map[string]string{"AWS_REGION": "x"}, aws: profile, want: "--region"},
		"variable":       {env: map[string]string{"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "x"}, aws: profile, want: "AWS_REGION"},
		"older variable": {env: map[string]string{"AWS_DEFAULT_REGION": "eu-west-1"}, aws: profile, want: "AWS_DEFAULT_REGION"},
		"profile":        {aws: profile, want: "profile prod"},
		"ARN":            {aws: aws.Config{Region: "eu-west-1"}, want: "the table's ARN"},
		"nothing":        {},
	}, func(t *testing.T, c variant) {
		c.flags.LookupEnv = func(name string) (string, bool) {
			v, ok := c.env[name]
			return v, ok
		}
		lab.Want(t, "region by", c.flags.regionBy(c.aws), c.want)
	})
}

func TestLayoutMismatchErrorSuggestsFlags(t *testing.T) {
	type variant struct {
		is, asked layout.Layout
		want      string
	}
	lab.Variants(t, map[string]variant{
		"partition key": {layout.Native{PartitionKey: "id"}, layout.Native{},
			`the partition key is "id", but the layout's is "key": use --attr key=id, or use another table`},
		"partition key with quotes": {layout.Native{PartitionKey: `a "b`}, layout.Native{},
			`the partition key is "a \"b", but the layout's is "key": use --attr 'key=a "b', or use another table`},
		"sort key": {layout.Native{SortKey: "range"}, layout.Native{},
			`the table has the sort key "range", but the layout has none: use --attr sort=range, or use another table`},
		"no sort key": {layout.Native{}, layout.Native{SortKey: "range"},
			`the table has no sort key, but the layout's is "range": leave sort out of --attr, or use another table`},
		"TTL": {layout.Native{TTL: "ends"}, layout.Native{},
			`TTL is on for the attribute "ends", but the layout's is "expiresAt", so released records stay until somebody deletes them, and a record that has the table's may be deleted while it is held: use --attr ttl=ends`},
		"another layout": {layout.DyndbMutex{}, layout.Native{},
			`the partition key is "lockname", but the layout's is "key": this is a table of layout dyndb-mutex: use --layout dyndb-mutex, or use another table`},
		"one of several layouts": {layout.Native{}, layout.DyndbMutex{},
			`the partition key is "key", but the layout's is "lockname": this is a table of layout native or awslabs or dynamolock: use --layout with one of them, or use another table`},
		"fixed names": {layout.Native{PartitionKey: "id"}, layout.DyndbMutex{},
			`the partition key is "id", but the layout's is "lockname": use another table, or another layout`},
	}, func(t *testing.T, c variant) {
		db := localdynamo.New().Client()
		lab.OK(t, table.Create(t.Context(), db, table.Spec{Name: "locks", Layout: c.is}))
		problems, err := table.Check(t.Context(), db, table.Spec{Name: "locks", Layout: c.asked})
		if err != nil || len(problems) == 0 {
			t.Fatalf("problems %v, %v", problems, err)
		}
		lab.Want(t, "flags", ByFlags(problems[0].What), c.want)
	})
}

func key(n int) aws.CredentialsProvider {
	return credentials.NewStaticCredentialsProvider(fmt.Sprint("key", n), "secret", "")
}

func refusedBy(code string) requests.Request {
	return requests.Request{Err: &smithy.GenericAPIError{Code: code}}
}

func TestCredentialsAreReloadedOnlyIfAWSRejectsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loads := 0
		var fails error
		source := &credentialSource{current: key(0), load: func(context.Context) (aws.CredentialsProvider, error) {
			loads++
			return key(loads), fails
		}}
		has := func(when, id string) {
			t.Helper()
			lab.Want(t, "key "+when, lab.Must(source.Retrieve(t.Context()))(t).AccessKeyID, id)
		}
		has("at first", "key0")
		for _, code := range []string{"", "AccessDeniedException", "ThrottlingException", "ConditionalCheckFailedException"} {
			source.saw(refusedBy(code))
			has("after "+code, "key0")
		}
		source.saw(refusedBy("ExpiredTokenException"))
		has("after a rejection", "key1")
		has("later", "key1")
		source.saw(refusedBy("UnrecognizedClientException"))
		has("after a rejection within the pause", "key1")
		time.Sleep(reloadPause)
		has("after the pause", "key2")
		fails = errors.New("half a file")
		time.Sleep(reloadPause)
		source.saw(refusedBy("InvalidSignatureException"))
		has("after a failed load", "key2")
		has("within the pause after the failed load", "key2")
		fails = nil
		time.Sleep(reloadPause)
		has("after the next load", "key4")
	})
}

func TestCredentialsAreLoadedOnceForConcurrentRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loads := 0
		source := &credentialSource{current: key(0), load: func(context.Context) (aws.CredentialsProvider, error) {
			loads++
			time.Sleep(5 * reloadPause)
			return key(loads), nil
		}}
		source.saw(refusedBy("ExpiredToken"))
		var wg sync.WaitGroup
		for n := range 50 {
			wg.Go(func() {
				time.Sleep(time.Duration(n) * reloadPause / 10)
				lab.WantErr(t, "Retrieve", lab.ErrorOf(source.Retrieve(t.Context())), nil)
			})
		}
		wg.Wait()
		lab.Want(t, "loads", loads, 1)
	})
}

func TestSlowLoadOfCredentialsOutlastsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &credentialSource{current: key(0), load: func(ctx context.Context) (aws.CredentialsProvider, error) {
			select {
			case <-time.After(4 * reloadPause):
			case <-ctx.Done():
			}
			return key(1), ctx.Err()
		}}
		source.saw(refusedBy("ExpiredToken"))
		for _, want := range []string{"key0", "key1"} {
			ctx, cancel := context.WithTimeout(t.Context(), reloadPause)
			lab.Want(t, "credentials", lab.Must(source.Retrieve(ctx))(t).AccessKeyID, want)
			cancel()
			time.Sleep(4 * reloadPause)
		}
	})
}

func TestEC2IsDetectedFromHardware(t *testing.T) {
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
		lab.OK(t, os.MkdirAll(filepath.Dir(path), 0o700))
		lab.OK(t, os.WriteFile(path, []byte(c.content), 0o600))
		lab.Want(t, c.file, onEC2(sys), c.want)
	}
}

func TestShortestAllowedLeaseIsLongEnoughForMaxSkew(t *testing.T) {
	for skew, shortest := range map[time.Duration]time.Duration{
		0: time.Second, 200 * time.Millisecond: 1200 * time.Millisecond, 2 * time.Second: 3 * time.Second,
		17 * time.Second: 21 * time.Second, 20 * time.Second: 24500 * time.Millisecond, 30 * time.Second: 36 * time.Second,
	} {
		lab.Want(t, fmt.Sprint("shortest lease for a skew of ", skew), shortestLease(skew), shortest)
	}
	for skew := time.Duration(0); skew < time.Minute; skew += 70 * time.Millisecond {
		if trust := lease.Usual(shortestLease(skew), skew).Trust(); trust < lease.ShortestTrust {
			t.Errorf("%v: trusted for %v", skew, trust)
		}
	}
}
