package holding

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestARefusalShortensALongKeyAndTheCommandToTypeDoesNot(t *testing.T) {
	long := "tenant/" + strings.Repeat("0123456789", 204) + "/last"
	prose, command, _ := strings.Cut(notALock(long, 3, false).Error(), "leasehold ")
	if n := utf8.RuneCountInString(prose); n > 400 || !strings.Contains(prose, "tenant/") || !strings.Contains(prose, "/last") {
		t.Errorf("%d characters: %s", n, prose)
	}
	if !strings.Contains(command, long) {
		t.Errorf("a command with another key: %s", command)
	}
}
