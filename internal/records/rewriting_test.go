package records

import (
	"testing"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

func TestAttributeThatPeerLibraryCannotReadIsNamed(t *testing.T) {
	for _, tc := range []struct {
		layout  layout.Layout
		changes protocol.Item // changes to a record whose lease is stored in milliseconds
		want    string
	}{
		{layout.AWSLabs{}, nil, ""},
		{layout.AWSLabs{}, protocol.Item{attrLease: text("20s")}, "leaseDuration is 20s"},
		{layout.AWSLabs{}, protocol.Item{attrLease: nil}, ""},
		{layout.AWSLabs{}, protocol.Item{attrExpiresAt: number(1764230400)}, "expiresAt is present"},
		{layout.AWSLabs{SortKey: attrExpiresAt}, protocol.Item{attrExpiresAt: text("the key")}, ""},
		{layout.Dynamolock{}, nil, "leaseDuration is 20000"},
		{layout.Dynamolock{}, protocol.Item{attrLease: text("20s")}, ""},
	} {
		p := mustProtocol(t, tc.layout).(protocol.Rewriting)
		if got := p.Foreign(with(tc.changes)); got != tc.want {
			t.Errorf("%s, with %v: %q, want %q", tc.layout.Name(), tc.changes, got, tc.want)
		}
	}
}
