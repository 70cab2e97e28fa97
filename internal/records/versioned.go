package records

import (
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Attributes of the awslabs Java client, also used by layouts Dynamolock and Native. When the
// Java client lists locks, it throws an exception if a row lacks one of the first three
// attributes. So leasehold writes these three to every row.
const (
	attrOwner    = "ownerName"
	attrLease    = "leaseDuration"
	attrVersion  = "recordVersionNumber"
	attrReleased = "isReleased"
	attrData     = "data"

	attrExpiresAt = "expiresAt" // the default TTL attribute of layout Native
)

// javaAttributes are the attributes of the awslabs Java client.
var javaAttributes = []string{attrOwner, attrLease, attrVersion, attrReleased, attrData}

// released is the value of attribute isReleased in the record of a free lock.
var released = text("1")

// versioned is the common part of the protocols whose records have an owner, a lease and a version
// that every write changes. A holder is dead once the version has not changed for one lease, by the
// observing client's clock.
type versioned struct {
	schema
	owner, lease, version string        // names of the attributes with the owner, the lease and the version
	released, data        string        // names of the attributes with the release mark and the caller's data; empty if the layout has none
	own                   []string      // all attribute names of the layout, except the names of the keys and of the TTL attribute
	kind                  string        // value of the attribute "kind"; empty for locks
	shares                bool          // locks may share the lease of a session
	handsOver             bool          // a release may hand the key to a waiter in the record's queue
	removed               []string      // names of attributes that every grant removes
	skew                  time.Duration // how much the wall clock of this client may be wrong; 0 if the clock is not bounded

	encodeLease func(time.Duration) types.AttributeValue
	decodeLease func(*decoder, string) time.Duration

	// collect is the time from the end of a lease to the TTL value of the held record. DynamoDB may
	// delete the record once the time in the TTL value has passed. Every grant and renewal sets the
	// TTL value anew. Zero means that held records have no TTL value.
	collect time.Duration
}

func (p versioned) Schema() protocol.Schema { return p.schema.Schema }

func (p versioned) Owned() bool { return true }

func (p versioned) Skew() time.Duration { return p.skew }

func (p versioned) Reserved(name string) bool {
	return p.isOwn(name) || slices.Contains(reserved, name)
}

// isOwn reports whether the named attribute belongs to the layout, and not to the caller.
func (p versioned) isOwn(name string) bool {
	return name == p.Partition || name == p.Sort || name == p.TTL ||
		slices.Contains(p.own, name) || slices.Contains(oursInAll, name)
}

// isRead reports whether the name is that of an attribute that only layout Native writes, and
// whose value is already in a field of r. In every layout, Decode must not return such an
// attribute as an attribute of the caller.
func isRead(name string, r protocol.Record) bool {
	switch name {
	case attrWaiters:
		return r.Waiters != nil
	case attrHanded:
		return r.Handed
	case attrNoQueueUntil:
		return !r.NoQueueUntil.IsZero()
	case attrLastDone:
		return r.Done != nil
	case attrStepDown:
		return r.Asked != ""
	}
	return false
}

func (p versioned) keeps() bool { return p.released != "" }

func (p versioned) grantable(w *protocol.Write, g protocol.Grant) []string {
	var conditions []string
	if p.keeps() {
		conditions = append(conditions, w.Name(p.released)+" = "+w.Value(released))
	}
	versions := slices.Clone(g.Takeable)
	if g.Dead != nil {
		versions = append(versions, g.Dead.Version)
	}
	if len(versions) > 0 {
		conditions = append(conditions, w.In(p.version, versions))
	}
	return conditions
}

// setGrant makes w set the attributes that every grant sets, and remove the attributes that
// every grant removes.
func (p versioned) setGrant(w *protocol.Write, g protocol.Grant) {
	w.Set(p.owner, text(g.Owner))
	w.Set(attrGrantedAt, number(g.Now.UnixMilli()))
	setIDAndToken(w, g)
	if p.kind != "" {
		w.Set(attrKind, text(p.kind))
	}
	if g.Session != "" {
		w.Set(attrSession, text(g.Session))
	}
	p.setLease(w, g.Version, g.Lease, g.Now)
	if p.keeps() {
		w.Remove(p.released)
	}
	for _, name := range p.removed {
		w.Remove(name)
	}
	p.setSeen(w)
	p.setChanges(w, g.Changes)
}

// setSeen makes w remove the mark of a hand-over. Every grant and every renewal removes the mark,
// with one exception: the hand-over to a waiter of another client (HandToHead) sets the mark.
func (p versioned) setSeen(w *protocol.Write) {
	if p.handsOver {
		w.Remove(attrHanded)
	}
}

// setLease adds to w the attributes of a lease, which every grant and every renewal sets.
func (p versioned) setLease(w *protocol.Write, version string, lease time.Duration, now time.Time) {
	w.Set(p.version, text(version))
	w.Set(p.lease, p.encodeLease(lease))
	if p.skew > 0 && lease <= longestLease {
		w.Set(attrLeaseEnds, leaseEnds(version, now, lease))
	}
	if p.collect > 0 {
		w.Set(p.TTL, number(endOf(now.Add(p.collect), lease, time.Second)))
	}
}

func (p versioned) setRenewal(w *protocol.Write, _ protocol.Hold, r protocol.Renewal) {
	p.setLease(w, r.Version, r.Lease, r.Now)
	p.setSeen(w)
	p.setChanges(w, r.Changes)
}

// setRelease makes w mark the record as released. The owner and the lease stay in the
// record, as the libraries of the layouts cannot read a record without them.
func (p versioned) setRelease(w *protocol.Write, r protocol.Release) {
	w.Set(p.released, released)
	w.Set(p.version, text(r.Version))
	if p.TTL != "" && !r.Expires.IsZero() {
		w.Set(p.TTL, number(r.Expires.Unix()))
	}
	if p.skew > 0 {
		w.Remove(attrLeaseEnds)
	}
	p.setChanges(w, r.Changes)
}

func (p versioned) held(w *protocol.Write, h protocol.Hold) string {
	return p.isCurrent(w, h) + " AND " + w.In(p.version, h.Versions)
}

func (p versioned) isCurrent(w *protocol.Write, h protocol.Hold) string {
	return p.unreleased(w) + w.Name(p.owner) + " = " + w.Text(h.Owner) + " AND " + isGrant(w, h)
}

func (p versioned) isRecord(w *protocol.Write, r protocol.Record) string {
	return p.unreleased(w) + w.Name(p.owner) + " = " + w.Text(r.Owner) + " AND " + w.In(p.version, []string{r.Version})
}

// unreleased returns the condition that the record is not marked as released, followed by AND.
// The caller appends the rest of its condition. unreleased returns "" if the layout has no
// such mark.
func (p versioned) unreleased(w *protocol.Write) string {
	if !p.keeps() {
		return ""
	}
	return "attribute_not_exists(" + w.Name(p.released) + ") AND "
}

// setChanges adds to w the changes to the caller's data and attributes.
func (p versioned) setChanges(w *protocol.Write, c protocol.Changes) {
	switch {
	case c.SetData && c.Data == nil:
		w.Remove(p.data)
	case c.SetData:
		w.Set(p.data, &types.AttributeValueMemberB{Value: c.Data})
	case c.InitialData != nil:
		w.SetTo(p.data, "if_not_exists("+w.Name(p.data)+", "+w.Value(&types.AttributeValueMemberB{Value: c.InitialData})+")")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Attributes)) {
		if v := c.Attributes[name]; v == nil {
			w.Remove(name)
		} else {
			w.Set(name, v)
		}
	}
}

// Decode decodes a record. In a released record, it checks only the key, the release mark,
// the kind and the token. Damage in the remaining attributes must not prevent a grant,
// because a grant replaces them.
func (p versioned) Decode(item protocol.Item) (protocol.Record, error) {
	d := decoder{item: item}
	r := protocol.Record{Key: d.key(p.schema)}
	d.kind(p.kind)
	if p.keeps() && d.has(p.released) {
		if d.text(p.released) != "1" {
			d.fail(p.released, `is present but not "1"`)
		}
		r.Released = true
	}
	token := d.token()
	if d.err != nil {
		return d.record(r)
	}
	d.lenient = r.Released
	r.Broken, r.TakenOver, r.Waiters, r.Done, r.Asked = brokenOf(item), takenOverOf(item), waitersOf(item), doneOf(item), askedOf(item)
	advice := decoder{item: item, lenient: true}
	r.Handed, r.NoQueueUntil = advice.text(attrHanded) == "1", advice.time(attrNoQueueUntil, time.UnixMilli)
	r.Owner = d.name(p.owner)
	r.Version = d.text(p.version)
	isOurs := p.kind != "" || d.isOurs(r.Owner, r.Version)
	if r.Released { // do not check the version: a released record needs none
		isOurs = protocol.HasClientID(r.Owner) && d.has(attrGrant)
	}
	r.Lease = p.decodeLease(&d, p.lease)
	if !r.Released {
		r.Lease = d.heldLease(p.lease, r.Lease, isOurs)
	}
	r.Data = d.binary(p.data)
	if isOurs {
		d.required(attrToken)
		r.Token = token
		r.Grant = d.text(attrGrant)
		r.GrantedAt = d.time(attrGrantedAt, time.UnixMilli)
		// Ignore a session other than the owner's: an earlier grant may have left it, or a user of
		// another library may have added it.
		if id, ok := item[attrSession].(*types.AttributeValueMemberS); ok && p.shares && id.Value == protocol.ClientID(r.Owner) {
			r.Session = id.Value
		}
		if r.Session == "" { // a lock under a session has no lease end of its own: the session's row contains it
			r.LeaseEnds = p.leaseEndsOf(item, r.Version)
		}
	}
	d.lenient = d.lenient || !isOurs && p.collect == 0 // another library may use an attribute of this name for other values
	expires := d.time(p.TTL, func(s int64) time.Time { return time.Unix(s, 0) })
	if p.collect > 0 {
		d.required(p.TTL)
	} else {
		r.ExpiresAt = expires
	}
	for name, v := range item {
		if !p.isOwn(name) && !isRead(name, r) {
			if r.Attributes == nil {
				r.Attributes = protocol.Item{}
			}
			r.Attributes[name] = v
		}
	}
	return d.record(r)
}
