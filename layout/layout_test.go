package layout

import (
	"strings"
	"testing"
)

func TestParseAcceptsEveryLayoutName(t *testing.T) {
	for _, name := range Names() {
		if l, err := Parse(name); err != nil || l.Name() != name {
			t.Errorf("%s: %v, %v", name, l, err)
		}
	}
	if _, err := Parse("zookeeper"); err == nil || !strings.Contains(err.Error(), "native") {
		t.Errorf("an unknown name: %v", err)
	}
}
