package say

import (
	"bytes"
	jsonv1 "encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/holders"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/internal/liveness"
)

func TestLeaseTextShowsTimeOfExpiryIfLeaseDurationIsUnknown(t *testing.T) {
	now := time.Now()
	for want, r := range map[string]leasehold.Record{
		"20s":      {Lease: 20 * time.Second, ExpiresAt: now.Add(time.Hour)},
		"in 12s":   {ExpiresAt: now.Add(12 * time.Second)},
		"3m2s ago": {ExpiresAt: now.Add(-182 * time.Second)},
		"":         {ExpiresAt: now.Add(time.Hour), Released: true},
	} {
		lab.Want(t, "lease", Lease(r, now), want)
	}
}

func TestTextAboutFinishedWorkShowsItsPeriodAndLockOwner(t *testing.T) {
	d := &leasehold.Done{Period: time.UnixMilli(0), Owner: "ann"}
	lab.Want(t, "done", doneText(d, moment), "1970-01-01, by ann")
}

func TestWaitersAreShownInQueueOrder(t *testing.T) {
	var r leasehold.Record
	for i, owner := range []string{"ann/abcdefghijklmnopqrstuvwxyz", "carl/abcdefghijklmnopqrstuvwxyz"} {
		r.Waiting = append(r.Waiting, struct {
			Owner string
			Since time.Time
		}{owner, time.UnixMilli(int64(i + 1))})
	}
	at := func(t time.Time) string { return t.UTC().Format("05.000") }
	lab.Want(t, "waiting", waitingText(r, at), "ann/abcd since 00.001, carl/abcd since 00.002")
}

func TestQueueSuspensionIsShownOnlyUntilItEnds(t *testing.T) {
	now := time.UnixMilli(1e12)
	for until, want := range map[time.Time]string{now.Add(time.Minute): moment(now.Add(time.Minute)), now: "", {}: ""} {
		for _, f := range (Record{Record: leasehold.Record{NoQueueUntil: until}}).fields(false, now) {
			if f[0] == "noQueueUntil" && f[1] != want {
				t.Errorf("until %v: %q, want %q", until, f[1], want)
			}
		}
	}
}

func TestListingShortensKeysAndOwnersToTerminalWidth(t *testing.T) {
	now := time.Now()
	long := leasehold.Record{
		Key:   leasehold.Key{Partition: "tenants/0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0/imports/2026-11-23/part-007"},
		Owner: "ip-10-20-30-40.eu-west-1.compute.internal/worker-17/47110815", Lease: 20 * time.Second,
		GrantedAt: now.Add(-3 * time.Minute), Token: 1764230400000042,
	}
	short := long
	short.Key.Partition, short.Owner = "k", "host/1"
	for _, checked := range []bool{false, true} {
		for _, colour := range []bool{false, true} {
			for _, columns := range []int{80, 100, 200} {
				var out bytes.Buffer
				l := Listing{Terminal: true, Columns: columns, Checked: checked}
				rows := []Record{{Record: long, Holder: holders.Dead}, {Record: short, Holder: holders.Live}}
				lab.OK(t, l.Write(&Output{To: &out, Terminal: true, Coloured: colour}, rows, now))
				text := strings.NewReplacer("\x1b[31m", "", "\x1b[0m", "").Replace(out.String())
				lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
				if len(lines) != 3 {
					t.Fatalf("%d lines:\n%s", len(lines), text)
				}
				for _, line := range lines {
					if utf8.RuneCountInString(line) > columns {
						t.Errorf("%d columns, want at most %d: %s", utf8.RuneCountInString(line), columns, line)
					}
				}
				lab.WantMatch(t, fmt.Sprint("a line in columns: ", columns), lines[1], "^tenants/.*part-007  .*1764230400000042")
				lab.Want(t, fmt.Sprint("the key is shown whole in columns: ", columns), strings.Contains(lines[1], long.Key.Partition), (columns == 200))
				for _, name := range []string{"OWNER", "TOKEN"} {
					before, _, _ := strings.Cut(lines[0], name)
					at := utf8.RuneCountInString(before)
					if row := []rune(lines[2]); row[at-1] != ' ' || row[at] == ' ' {
						t.Errorf("%s is not aligned:\n%s", name, text)
					}
				}
			}
		}
	}
	var pipe bytes.Buffer
	lab.OK(t, (Listing{}).Write(&Output{To: &pipe}, []Record{{Record: long}}, now))
	lab.WantMatch(t, "the output in a pipe", pipe.String(), "^"+regexp.QuoteMeta(long.Key.Partition+"\t"+long.Owner+"\t"))
}

func TestSharedLeasesAreMarkedInTerminalListing(t *testing.T) {
	now := time.Now()
	for session, want := range map[string]string{"": "20s", "id": "20s shared"} {
		r := Record{Record: leasehold.Record{Key: leasehold.Key{Partition: "job"}, Owner: "host", Lease: 20 * time.Second, Session: session}}
		lab.Want(t, "session "+session, (Listing{Terminal: true}).cells(r, now)[3].text, want)
		lab.Want(t, "in a pipe, session "+session, (Listing{}).cells(r, now)[3].text, "20s")
	}
}

func TestTerminalListingShowsHolderData(t *testing.T) {
	r := leasehold.Record{Key: leasehold.Key{Partition: "k"}, Owner: "ci/1", Lease: time.Second, GrantedAt: time.Now(), Data: []byte("deploying v42")}
	for _, tc := range []struct {
		terminal, released, want bool
	}{{true, false, true}, {true, true, false}, {false, false, false}} {
		var out bytes.Buffer
		r.Released = tc.released
		to := &Output{To: &out, Terminal: tc.terminal}
		lab.OK(t, (Listing{Terminal: tc.terminal, Columns: 100}).Write(to, []Record{{Record: r}}, time.Now()))
		lab.Want(t, fmt.Sprintf("%+v: the data is in %s", tc, &out), strings.Contains(out.String(), "ci/1: deploying v42"), tc.want)
	}
}

func TestLockListingShowsWhichWorkWasDoneUnderLatestGrant(t *testing.T) {
	const token = 1764230400000042
	night := time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)
	for want, done := range map[string]*leasehold.Done{
		"released":                      nil,
		"done: v42":                     {Once: "v42", Token: token},
		"done: 2026-11-24":              {Period: night.Local(), Token: token},
		"done: 2026-11-24 06:00:00 UTC": {Period: night.Add(6 * time.Hour), Token: token},
	} {
		r := Record{Record: leasehold.Record{Key: leasehold.Key{Partition: "nightly"}, Owner: "vm/31903", Lease: 20 * time.Second, Token: token, Released: true, Done: done}}
		var out bytes.Buffer
		lab.OK(t, (Listing{Terminal: true, Columns: 80, States: true}).Write(&Output{To: &out}, []Record{r}, night))
		lab.WantMatch(t, "the listing", out.String(), "  "+want+"\n$")
	}
	// The done mark in this record has an earlier grant's token. So it must not appear as
	// the result of the current, released grant.
	r := Record{Record: leasehold.Record{Token: token, Released: true, Done: &leasehold.Done{Once: "v42", Token: token - 1}}}
	cells := (Listing{Terminal: true, States: true}).cells(r, night)
	lab.Want(t, "state", cells[len(cells)-1].text, "released")
}

func TestHoldTimeOfDeadHolderStopsAtLeaseExpiry(t *testing.T) {
	now := time.Now()
	granted := now.Add(-3 * time.Minute)
	rec := leasehold.Record{Key: leasehold.Key{Partition: "k"}, Owner: "o", GrantedAt: granted, Lease: 10 * time.Second, Version: "1", Grant: "1"}
	beat := liveness.Beat{Until: granted.Add(10 * time.Second)}
	for state, want := range map[holders.State]string{holders.Dead: "10s", holders.Live: "3m0s"} {
		r := Observed("locks", "", holders.Observation{Record: rec, State: state, Beat: beat})
		var screen, piped bytes.Buffer
		if err := (Listing{Terminal: true, Columns: 100, Checked: true}).Write(&Output{To: &screen}, []Record{r}, now); err != nil || strings.Fields(strings.Split(screen.String(), "\n")[1])[2] != want {
			t.Errorf("%s: %s, %v", state, &screen, err)
		}
		lab.OK(t, (Listing{JSON: true}).Write(&Output{To: &piped}, []Record{r}, now))
		var json struct{ HeldMs int64 }
		if err := jsonv1.Unmarshal(piped.Bytes(), &json); err != nil || (json.HeldMs == 10_000) != (state == holders.Dead) {
			t.Errorf("%s: %s, %v", state, &piped, err)
		}
	}
}

func TestOutputEscapesControlCharactersInText(t *testing.T) {
	const evil = "\x1b[2J\u009b2J\u202e\xff\r"
	for _, c := range []struct {
		out  Output
		want string
	}{
		{Output{}, `\u001b[2J\u009b2J\u202e\xff\u000d`},
		{Output{Terminal: true}, "\r\x1b[K" + `\u001b[2J\u009b2J\u202e\xff\u000d`},
		{Output{Terminal: true, Coloured: true}, "\r\x1b[K\x1b[31m" + `\u001b[2J\u009b2J\u202e\xff\u000d` + "\x1b[0m"},
	} {
		var got bytes.Buffer
		c.out.To = &got
		if err := c.out.Show(overLine, Red, evil); err != nil || got.String() != c.want {
			t.Errorf("%+v: %q, %v", c.out, got.String(), err)
		}
	}
}

func TestDataOfLockIsEscapedOnlyOnTerminal(t *testing.T) {
	data := []byte("\x1b[2J\xff\u202e\n")
	for terminal, want := range map[bool]string{false: string(data), true: `\u001b[2J\xff\u202e` + "\n"} {
		var got bytes.Buffer
		if err := (&Output{To: &got, Terminal: terminal}).Data(data); err != nil || got.String() != want {
			t.Errorf("terminal %v: %q, %v", terminal, got.String(), err)
		}
	}
}
