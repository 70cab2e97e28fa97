package ui

import (
	"strings"
	"testing"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

func TestTheRecordOfAReaderIsShownWithItsMode(t *testing.T) {
	r := protocol.Record{Key: protocol.Key{Partition: "index"}, Mode: protocol.ModeRead, Version: "one"}
	if shown := string(recordJSON(r)); !strings.Contains(shown, `"mode":"read"`) {
		t.Error(shown)
	}
}
