package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"pgregory.net/rapid"

	"github.com/leasehold-go/leasehold/internal/records"
	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/table"
)

func TestRepliesBoundTheDifferenceOfTheClocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ahead := time.Duration(rapid.Int64Range(-int64(time.Hour), int64(time.Hour)).Draw(t, "ahead"))
		now := time.Unix(1_700_000_000, rapid.Int64Range(0, int64(time.Second)).Draw(t, "nanoseconds"))
		var c clockRange
		for range rapid.IntRange(1, 20).Draw(t, "replies") {
			out := time.Duration(rapid.Int64Range(0, int64(100*time.Millisecond)).Draw(t, "out"))
			back := time.Duration(rapid.Int64Range(0, int64(100*time.Millisecond)).Draw(t, "back"))
			date := now.Add(out).Add(ahead).Truncate(time.Second)
			c.add(date, now, now.Add(out).Add(back))
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "pause")))
		}
		if ahead < c.from || ahead > c.to || c.to-c.from > time.Second+200*time.Millisecond {
			t.Errorf("%v is not between %v and %v", ahead, c.from, c.to)
		}
		if d := ahead.Abs(); d < c.least() || d > c.most() {
			t.Errorf("%v is not between %v and %v", d, c.least(), c.most())
		}
	})
}

func TestAPercentileIsTheValueThatThatShareDoesNotExceed(t *testing.T) {
	var values []time.Duration
	if percentile(values, 0.5) != 0 {
		t.Error("of nothing")
	}
	for i := range 100 {
		values = append(values, time.Duration(i+1))
	}
	if p50, p99, most := percentile(values, 0.5), percentile(values, 0.99), percentile(values, 1); p50 != 50 || p99 != 99 || most != 100 {
		t.Errorf("%d, %d, %d", p50, p99, most)
	}
	if only := percentile(values[:1], 0.5); only != 1 {
		t.Errorf("%d", only)
	}
}

func TestTheLeaseThatDoctorAdvisesIsTheShortestForWhichTheTableIsNotSlow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		took := time.Duration(rapid.Int64Range(1, int64(20*time.Second)).Draw(t, "took"))
		skew := time.Duration(rapid.IntRange(0, 2).Draw(t, "skew")) * time.Second
		least := leaseFor(took, skew)
		if isSlow(timingOf(least, skew), took) || tries(timingOf(least, skew), took) < leastTries {
			t.Errorf("%v is too short", least)
		}
		if shorter := least - time.Second; shorter >= time.Second+skew && !isSlow(timingOf(shorter, skew), took) {
			t.Errorf("%v would do, not only %v", shorter, least)
		}
	})
}

func TestATableIsSlowWhoseRequestsTakeAQuarterOfARenewalPeriod(t *testing.T) {
	for _, c := range []struct {
		took time.Duration
		want verdict
	}{{time.Millisecond, fine}, {time.Second, fine}, {1500 * time.Millisecond, warning}, {4 * time.Second, warning}, {10 * time.Second, fatal}} {
		var out bytes.Buffer
		d := doctorOf(Env{}, globalFlags{}, &out)
		var err error
		if d.proto, err = records.Of(layout.Native{}); err != nil {
			t.Fatal(err)
		}
		d.sayRoundTrip("renewals", []time.Duration{c.took})
		if f := saidFinding(t, &out); f.State != c.want || (f.Do == "") != (c.want == fine) {
			t.Errorf("%v: %+v", c.took, f)
		}
	}
}

// doctorOf is a doctor whose lines of JSON go to out.
func doctorOf(env Env, flags globalFlags, out *bytes.Buffer) *doctor {
	env.Stdout, env.Stderr, flags.json = out, out, true
	return &doctor{
		app:   &app{Env: env, flags: flags, say: newMessages(env)},
		flags: doctorFlags{lease: defaultLease}, worst: fine, interrupted: func() bool { return false },
	}
}

// saidFinding is the one line that a doctor has said.
func saidFinding(t *testing.T, out *bytes.Buffer) finding {
	t.Helper()
	var f finding
	if err := json.Unmarshal(out.Bytes(), &f); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	return f
}

func TestDoctorAsksASilentServerThreeTimesAndNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, n := time.Now(), 0
		err := (&doctor{}).ask(t.Context(), func(ctx context.Context) error {
			n++
			<-ctx.Done()
			return ctx.Err()
		})
		if took := time.Since(began); err == nil || n != doctorTries || took > 10*time.Second {
			t.Errorf("%d requests in %v: %v", n, took, err)
		}
	})
}

func TestDoctorTriesWhatThePoliciesAllow(t *testing.T) {
	permissions, err := (&store{layout: layout.Native{}}).permissions((&store{layout: layout.Native{}}).testKey("k", "s"))
	if err != nil {
		t.Fatal(err)
	}
	var policy struct{ Statement []struct{ Action []string } }
	for _, access := range []table.Access{table.Use, table.Operate, table.Read} {
		if err := json.Unmarshal([]byte(table.Spec{}.Policy("", access)), &policy); err != nil {
			t.Fatal(err)
		}
		tried := map[string]bool{}
		for _, p := range permissions {
			if p.neededFor(access) {
				tried[p.action] = true
			}
		}
		if want := policy.Statement[0].Action; !slices.Equal(slices.Sorted(maps.Keys(tried)), slices.Sorted(slices.Values(want))) {
			t.Errorf("%s: tried %v, allowed %v", access, tried, want)
		}
	}
	for _, p := range permissions {
		if !p.neededFor(table.Operate) {
			t.Errorf("no policy allows %s", p.action)
		}
	}
}

func TestDoctorSaysWhereTheRegionIsFrom(t *testing.T) {
	profile := aws.Config{Region: "eu-west-1", ConfigSources: []any{config.EnvConfig{}, config.SharedConfig{Profile: "prod", Region: "eu-west-1"}}}
	for _, c := range []struct {
		name  string
		table string
		flags globalFlags
		env   map[string]string
		aws   aws.Config
		want  string
	}{
		{name: "flag", flags: globalFlags{region: "eu-west-1"}, env: map[string]string{"AWS_REGION": "x"}, aws: profile, want: "eu-west-1, from --region"},
		{name: "variable", env: map[string]string{"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "x"}, aws: profile, want: "eu-west-1, from AWS_REGION"},
		{name: "older variable", env: map[string]string{"AWS_DEFAULT_REGION": "eu-west-1"}, aws: profile, want: "eu-west-1, from AWS_DEFAULT_REGION"},
		{name: "profile", aws: profile, want: "eu-west-1, from profile prod"},
		{name: "ARN", table: "arn:aws:dynamodb:eu-west-1:123456789012:table/locks", aws: aws.Config{Region: "eu-west-1"}, want: "eu-west-1, from the table's ARN"},
		{name: "nothing", want: "local, from nowhere: any will do for a server on this machine"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			d := doctorOf(envOf(c.env), c.flags, &out)
			d.store = &store{table: c.table, aws: c.aws, db: dynamodb.New(dynamodb.Options{Region: cmp.Or(c.aws.Region, placeholder)})}
			d.checkRegion()
			if f := saidFinding(t, &out); f.What != c.want || f.State != fine {
				t.Errorf("%+v", f)
			}
		})
	}
}
