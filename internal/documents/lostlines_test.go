package documents_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestOperatorsPageListsLogLinesOfLostLock(t *testing.T) {
	t.Chdir(root)
	page := lab.Must(os.ReadFile("docs/operating.md"))(t)
	_, section, ok := strings.Cut(string(page), "\n### Losing a lock\n")
	if !ok {
		t.Fatal("the page has no such section")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	later := &leasehold.Record{Owner: "host", Token: 8}
	for want, e := range map[string]leasehold.LostError{
		"`no renewal got through in time`":                                  {Reason: leasehold.LostExpired},
		"`the process stood still past the lease`":                          {Reason: leasehold.LostPaused},
		"`broken by … at …`":                                                {Reason: leasehold.LostBroken, By: &leasehold.Record{Token: 7, Broken: &leasehold.End{By: "…", At: time.Now(), Token: 7}}},
		"`somebody broke or deleted it`":                                    {Reason: leasehold.LostBroken},
		"`the record shows it released`":                                    {Reason: leasehold.LostBroken, By: &leasehold.Record{Token: 7, Released: true}},
		"`the record shows a later grant, of …`":                            {Reason: leasehold.LostReplaced, By: later},
		"`it was renewed since, by another process that resumed the grant`": {Reason: leasehold.LostReplaced, By: &leasehold.Record{Owner: "host", Token: 7}},
	} {
		e.Token = 7
		first, _, _ := strings.Cut(strings.Trim(want, "`"), "…")
		if !strings.Contains(e.Error(), ": "+first) {
			t.Errorf("%s is not what is said: %v", want, &e)
		}
		if !strings.Contains(section, "| "+want+" | ") {
			t.Errorf("the page does not say what to do about %s", want)
		}
	}
	if screen := strings.SplitN(string(page), "\n", 41); !strings.Contains(strings.Join(screen[:40], "\n"), "3 a.m.") || !strings.Contains(strings.Join(screen[:40], "\n"), "leasehold ls --check") {
		t.Error("the first screen is not what one types first")
	}
}
