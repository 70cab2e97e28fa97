package records_test

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

func TestAGrantOfOursThatHasLostItsTokenIsDamagedAndNotAPeers(t *testing.T) {
	onEachLayout(t, func(t *testing.T, b *bench) {
		_, item := b.hold()
		delete(item, "fencingToken")
		r, err := b.Decode(item)
		var bad *protocol.DecodeError
		if !errors.As(err, &bad) || bad.Attribute != "fencingToken" {
			t.Errorf("read %+v, %v", r, err)
		}
	})
}

func TestARecordSaysWhenItWasGrantedThoughItHasBeenRenewed(t *testing.T) {
	onEachLayout(t, func(t *testing.T, b *bench) {
		g := b.grant(protocol.NewVersion())
		g.Now = protocol.VersionTime(g.Version)
		if !b.lands(b.Grant(g)) {
			t.Fatal("not granted")
		}
		r := b.record()
		h := protocol.Hold{Key: g.Key, Owner: r.Owner, Grants: []string{g.Version}, Token: r.Token, Versions: []string{g.Version}}
		if !b.lands(b.Renew(h, protocol.Renewal{Version: v2, Lease: lease, Now: g.Now.Add(time.Second)})) {
			t.Fatal("not renewed")
		}
		if at := b.record().GrantedAt; !at.Equal(g.Now) {
			t.Errorf("granted at %v, and the record says %v", g.Now, at)
		}
	})
}
