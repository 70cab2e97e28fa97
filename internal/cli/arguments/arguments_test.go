package arguments_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/cli/arguments"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestDurationsAreParsedAndPrintedInShortForm(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"90": 90 * time.Second, "0": 0, "1.5": 1500 * time.Millisecond, "10m": 10 * time.Minute, "1h30m": 90 * time.Minute, "2d": 48 * time.Hour,
	} {
		if got, err := wording.ParseDuration(in); err != nil || got != want {
			t.Errorf("%q: %v, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "soon", "-1", "-5s", "1e99", "NaN"} {
		lab.WantFailed(t, in, lab.ErrorOf(wording.ParseDuration(in)))
	}
	for want, in := range map[string]time.Duration{"20s": 20 * time.Second, "10m": 10 * time.Minute, "1h": time.Hour, "1h30m": 90 * time.Minute, "1m30s": 90 * time.Second} {
		lab.Want(t, in.String(), wording.Duration(in), want)
	}
	for want, in := range map[string]time.Duration{"0s": -time.Second, "59s": 59 * time.Second, "3m12s": 192 * time.Second, "5h3m": 5*time.Hour + 3*time.Minute, "6d5h": 149 * time.Hour} {
		lab.Want(t, in.String(), wording.Age(in), want)
	}
}

func TestDataLargerThanRecordIsNotReadToEnd(t *testing.T) {
	endless := strings.NewReader(strings.Repeat("x", 1<<20))
	flag := arguments.Data{Text: arguments.Text{Value: "@-", Given: true}}
	lab.WantFailed(t, "Option", lab.ErrorOf(flag.Option(endless)))
	lab.WantRange(t, "bytes that were not read", len(lab.Must(io.ReadAll(endless))(t)), 1<<19, 1<<20)
}
