package failure

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/wording"
)

func TestAMessageShortensALongKeyAndACommandToTypeDoesNot(t *testing.T) {
	long := leasehold.Key{Partition: "tenant/" + strings.Repeat("0123456789", 204) + "/last"}
	record := leasehold.Record{Key: long, Owner: "me", Token: 7, Version: "v"}
	for name, err := range map[string]error{
		"held":    &leasehold.HeldError{Key: long, Table: "locks", Holder: record},
		"lost":    &leasehold.LostError{Key: long, Table: "locks", Reason: leasehold.LostExpired},
		"changed": &leasehold.ChangedError{Table: "locks", Now: record},
		"damaged": &leasehold.RecordError{Key: long, Table: "locks", Attribute: "ownerName", Problem: "is missing"},
		"failed":  &leasehold.OpError{Op: "break", Key: long, Table: "locks", Err: context.DeadlineExceeded},
	} {
		prose, command, _ := strings.Cut(Text(err, "here"), "leasehold ")
		if n := utf8.RuneCountInString(prose); n > 400 || !strings.Contains(prose, "tenant/") || !strings.Contains(prose, "/last") {
			t.Errorf("%s: %d characters: %s", name, n, prose)
		}
		if name == "damaged" && !strings.Contains(command, long.Partition) {
			t.Errorf("%s: a command with another key: %s", name, command)
		}
	}
	short := leasehold.Key{Partition: "tenants/0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0/imports/2026-11-23/part-007"}
	if got := wording.Key(short); got != short.Partition {
		t.Errorf("a key of 68 characters became %s", got)
	}
}
