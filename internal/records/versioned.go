package records

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Attributes of the awslabs Java client, which dynamolock and native share. Its
// listing throws on a row without the first three, so every row has them.
const (
	attrOwner    = "ownerName"
	attrLease    = "leaseDuration"
	attrVersion  = "recordVersionNumber"
	attrReleased = "isReleased"
	attrData     = "data"

	attrExpiresAt = "expiresAt" // native's TTL
)

// versioned spells the layouts whose records carry an owner, a lease and a
// version that every write changes. A holder is dead once its version has
// stood still for its lease, by the clock of whoever watches.
type versioned struct {
	schema
	owner, lease, version string // attributes
	released, data        string // attributes; empty: the layout has none
	own                   []string
	kind                  string   // of rows that are no locks
	shares                bool     // records may belong to a session
	removed               []string // by every grant

	encodeLease func(time.Duration) types.AttributeValue
	decodeLease func(*decoder, string) time.Duration

	// collect is how long after the end of its lease TTL may collect a record
	// that is held: each write moves it. 0: held records carry no TTL.
	collect time.Duration
}

func (p versioned) Schema() protocol.Schema { return p.schema.Schema }

func (p versioned) Owned() bool { return true }

func (p versioned) Skew() time.Duration { return 0 }

func (p versioned) Reserved(name string) bool {
	return p.isOwn(name) || slices.Contains(reserved, name)
}

// isOwn reports whether an attribute is part of the record, not the caller's.
func (p versioned) isOwn(name string) bool {
	return name == p.Partition || name == p.Sort || name == p.TTL ||
		slices.Contains(p.own, name) || slices.Contains(ours, name)
}

func (p versioned) Grant(g protocol.Grant) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(g.Key))
	p.setGrant(w, g)
	var released, takeable string
	if p.released != "" {
		released = fmt.Sprintf("%s = %s", w.Name(p.released), w.Text("1"))
	}
	versions := slices.Clone(g.Takeable)
	for _, dead := range g.Dead {
		versions = append(versions, dead.Version)
	}
	if len(versions) > 0 {
		takeable = w.In(p.version, versions)
	}
	whereGrantable(w, g, p.Partition, released, takeable)
	return w
}

func (p versioned) HandOver(h protocol.Hold, g protocol.Grant) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(g.Key))
	p.setGrant(w, g)
	w.Where(p.held(w, h) + " AND " + tokenInRange(w))
	return w
}

// setGrant writes what every grant writes.
func (p versioned) setGrant(w *protocol.Write, g protocol.Grant) {
	w.Set(p.owner, text(g.Owner))
	w.Set(attrGrantedAt, number(g.Now.UnixMilli()))
	setGrant(w, g)
	if p.kind != "" {
		w.Set(attrKind, text(p.kind))
	}
	if g.Session != "" {
		w.Set(attrSession, text(g.Session))
	}
	p.setLease(w, g.Version, g.Lease, g.Now)
	if p.released != "" {
		w.Remove(p.released)
	}
	for _, name := range p.removed {
		w.Remove(name)
	}
	p.carry(w, g.Changes)
}

// setLease writes what every grant and renewal writes.
func (p versioned) setLease(w *protocol.Write, version string, lease time.Duration, now time.Time) {
	w.Set(p.version, text(version))
	w.Set(p.lease, p.encodeLease(lease))
	if p.collect > 0 {
		w.Set(p.TTL, number(endOf(now.Add(p.collect), lease, time.Second)))
	}
}

func (p versioned) Renew(h protocol.Hold, r protocol.Renewal) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(h.Key))
	p.setLease(w, r.Version, r.Lease, r.Now)
	p.carry(w, r.Changes)
	w.Where(p.held(w, h))
	return w
}

func (p versioned) Release(h protocol.Hold, r protocol.Release) *protocol.Write {
	if p.released == "" {
		return p.Delete(h)
	}
	w := protocol.NewUpdate(p.mustKey(h.Key))
	p.setReleased(w, r.Version, r.Expires)
	p.carry(w, r.Changes)
	w.Where(p.held(w, h))
	return w
}

func (p versioned) Delete(h protocol.Hold) *protocol.Write {
	w := protocol.NewDelete(p.mustKey(h.Key))
	w.Where(p.held(w, h))
	return w
}

func (p versioned) Guard(h protocol.Hold) *protocol.Write {
	w := protocol.NewCheck(p.mustKey(h.Key))
	w.Where(p.stands(w, h))
	return w
}

func (p versioned) Break(r protocol.Record, version string, expires time.Time) *protocol.Write {
	w := protocol.NewDelete(p.mustKey(r.Key))
	if p.released != "" {
		w = protocol.NewUpdate(p.mustKey(r.Key))
		p.setReleased(w, version, expires)
	}
	w.Where(strings.Join(append(p.unreleased(w), w.Name(p.owner)+" = "+w.Text(r.Owner), w.In(p.version, []string{r.Version})), " AND "))
	return w
}

// setReleased leaves owner and lease in place: the peers' readers need them.
func (p versioned) setReleased(w *protocol.Write, version string, expires time.Time) {
	w.Set(p.released, text("1"))
	w.Set(p.version, text(version))
	if p.TTL != "" && !expires.IsZero() {
		w.Set(p.TTL, number(expires.Unix()))
	}
}

// held is the condition of every write on a grant that is held.
func (p versioned) held(w *protocol.Write, h protocol.Hold) string {
	return p.stands(w, h) + " AND " + w.In(p.version, h.Versions)
}

// stands is the condition that the grant has not ended, whatever its version.
func (p versioned) stands(w *protocol.Write, h protocol.Hold) string {
	return strings.Join(append(p.unreleased(w), w.Name(p.owner)+" = "+w.Text(h.Owner), isGrant(w, h)), " AND ")
}

func (p versioned) unreleased(w *protocol.Write) []string {
	if p.released == "" {
		return nil
	}
	return []string{"attribute_not_exists(" + w.Name(p.released) + ")"}
}

func (p versioned) carry(w *protocol.Write, c protocol.Changes) {
	switch {
	case c.SetData && c.Data == nil:
		w.Remove(p.data)
	case c.SetData:
		w.Set(p.data, &types.AttributeValueMemberB{Value: c.Data})
	case c.InitialData != nil:
		w.SetTo(p.data, fmt.Sprintf("if_not_exists(%s, %s)",
			w.Name(p.data), w.Value(&types.AttributeValueMemberB{Value: c.InitialData})))
	}
	carryAttributes(w, c)
}

// Decode reads a record. Of a released one only the mark of its release, kind
// and the token are looked at: damage elsewhere does not keep it from being
// granted, because a grant writes all of it anew.
func (p versioned) Decode(item protocol.Item) (protocol.Record, error) {
	d := decoder{item: item}
	r := protocol.Record{Key: d.key(p.schema)}
	d.kind(p.kind)
	if p.released != "" && d.has(p.released) {
		if d.text(p.released) != "1" {
			d.fail(p.released, `is there but not "1"`)
		}
		r.Released = true
	}
	token := d.token()
	if r.Released {
		if d.err != nil {
			return protocol.Record{Key: r.Key}, d.err
		}
		d.lenient = true
	}
	r.Owner = d.name(p.owner)
	r.Version = d.text(p.version)
	isOurs := p.kind != "" || d.isOurs(r.Owner, r.Version)
	if r.Released { // whose version does not matter any more
		isOurs = protocol.HasClientID(r.Owner) && d.has(attrGrant)
	}
	r.Lease = p.decodeLease(&d, p.lease)
	if !r.Released {
		r.Lease = d.heldLease(p.lease, r.Lease, isOurs)
	}
	if p.data != "" {
		r.Data = d.binary(p.data)
	}
	if isOurs {
		d.required(attrToken)
		r.Token = token
		r.Grant = d.text(attrGrant)
		r.GrantedAt = d.time(attrGrantedAt, time.UnixMilli)
		// The session of an earlier grant may have been left behind, or a peer's
		// attribute of that name.
		if id, ok := item[attrSession].(*types.AttributeValueMemberS); ok && p.shares && id.Value == protocol.ClientID(r.Owner) {
			r.Session = id.Value
		}
	}
	ttl := d
	ttl.lenient = ttl.lenient || !isOurs && p.collect == 0 // a peer's attribute of that name means nothing
	if expires := ttl.expiry(p.TTL, p.collect > 0); p.collect == 0 {
		r.ExpiresAt = expires
	}
	d.err = ttl.err
	for name, v := range item {
		if !p.isOwn(name) {
			if r.Attributes == nil {
				r.Attributes = protocol.Item{}
			}
			r.Attributes[name] = v
		}
	}
	if d.err != nil {
		return protocol.Record{Key: r.Key}, d.err
	}
	return r, nil
}
