package records

import (
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

func newMutex(l layout.DyndbMutex) (protocol.Protocol, error) {
	key := schema{Schema: protocol.Schema{Partition: "lockname", TTL: "ttl"}}
	c, err := newClocked(l.Name(), key, mutexExpires, time.Millisecond, l.MaxSkew)
	return mutex{c}, err
}

// The attributes of a dyndb-mutex record. A peer's holder is a name that its
// objects may share. Ours is the owner and the version, new in every write: a
// peer of the same name can then not release what it does not hold.
const (
	mutexHolder  = "holder"
	mutexExpires = "expire_ts"
	mutexFree    = "__empty__"
)

// mutexCollect is how long after its expiry TTL may collect a record: the
// peer's own two days. The peer writes milliseconds, which TTL takes for a time
// far away; we write seconds.
const mutexCollect = 48 * time.Hour

type mutex struct{ clocked }

// holderOf spells the holder of a write of ours.
func holderOf(owner, version string) string { return owner + "/" + version }

// parseHolder takes a holder apart that may be one of ours.
func parseHolder(holder string) (owner, version string) {
	if i := strings.LastIndexByte(holder, '/'); i >= 0 {
		return holder[:i], holder[i+1:]
	}
	return holder, ""
}

func (p mutex) Owned() bool { return true }

func (p mutex) Reserved(name string) bool {
	return slices.Contains([]string{p.Partition, p.TTL, mutexHolder, mutexExpires}, name) || slices.Contains(reserved, name)
}

func (p mutex) Grant(g protocol.Grant) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(g.Key))
	p.setGrant(w, g)
	free := w.Name(mutexHolder) + " = " + w.Text(mutexFree)
	var takeable, dead string
	if len(g.Takeable) > 0 {
		takeable = p.showsAnybodys(w, g.Takeable)
	}
	if len(g.Dead) > 0 {
		dead = p.isRecord(w, g.Dead[0]) + " AND " + p.isExpired(w, g.Now)
	}
	whereGrantable(w, g, p.Partition, free, takeable, dead)
	return w
}

func (p mutex) setGrant(w *protocol.Write, g protocol.Grant) {
	setGrant(w, g)
	p.setLease(w, g.Owner, g.Version, g.Lease, g.Now)
}

// setLease writes what every grant and renewal writes.
func (p mutex) setLease(w *protocol.Write, owner, version string, lease time.Duration, now time.Time) {
	w.Set(mutexHolder, text(holderOf(owner, version)))
	w.Set(p.TTL, number(endOf(now.Add(mutexCollect), lease, time.Second)))
	p.setExpires(w, now, lease)
}

func (p mutex) HandOver(h protocol.Hold, g protocol.Grant) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(g.Key))
	p.setGrant(w, g)
	w.Where(p.held(w, h) + " AND " + tokenInRange(w))
	return w
}

func (p mutex) Renew(h protocol.Hold, r protocol.Renewal) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(h.Key))
	p.setLease(w, h.Owner, r.Version, r.Lease, r.Now)
	w.Where(p.held(w, h))
	return w
}

func (p mutex) Release(h protocol.Hold, r protocol.Release) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(h.Key))
	p.setReleased(w, r.Expires)
	w.Where(p.held(w, h))
	return w
}

// setReleased writes what a peer's release writes.
func (p mutex) setReleased(w *protocol.Write, expires time.Time) {
	w.Set(mutexHolder, text(mutexFree))
	w.Set(mutexExpires, number(0))
	if expires.IsZero() {
		w.Remove(p.TTL)
	} else {
		w.Set(p.TTL, number(expires.Unix()))
	}
}

func (p mutex) Delete(h protocol.Hold) *protocol.Write {
	w := protocol.NewDelete(p.mustKey(h.Key))
	w.Where(p.held(w, h))
	return w
}

func (p mutex) Guard(h protocol.Hold) *protocol.Write {
	w := protocol.NewCheck(p.mustKey(h.Key))
	w.Where(isGrant(w, h) + " AND " + p.isHeld(w))
	return w
}

func (p mutex) Break(r protocol.Record, _ string, expires time.Time) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(r.Key))
	p.setReleased(w, expires)
	w.Where(p.isRecord(w, r))
	return w
}

// isRecord is the condition that the record is still as r shows it.
func (p mutex) isRecord(w *protocol.Write, r protocol.Record) string {
	if r.Grant != "" {
		return p.shows(w, r.Owner, []string{r.Version})
	}
	return w.Name(mutexHolder) + " = " + w.Text(r.Owner) + " AND " + w.Name(mutexExpires) + " = " + w.Value(decimal(r.Version))
}

func (p mutex) isHeld(w *protocol.Write) string {
	return w.Name(mutexHolder) + " <> " + w.Text(mutexFree)
}

// shows is the condition that the record shows one of an owner's versions.
func (p mutex) shows(w *protocol.Write, owner string, versions []string) string {
	holders := make([]string, len(versions))
	for i, v := range versions {
		holders[i] = holderOf(owner, v)
	}
	return w.In(mutexHolder, holders)
}

// showsAnybodys is the condition, to be one of several, that the record shows one of the versions,
// whoever its owner: a grant that was resumed keeps the one it was given to.
func (p mutex) showsAnybodys(w *protocol.Write, versions []string) string {
	ways := make([]string, len(versions))
	for i, v := range versions {
		ways[i] = "contains(" + w.Name(mutexHolder) + ", " + w.Text("/"+v) + ")"
	}
	return strings.Join(ways, " OR ")
}

func (p mutex) held(w *protocol.Write, h protocol.Hold) string {
	return isGrant(w, h) + " AND " + p.shows(w, h.Owner, h.Versions)
}

// Decode reads a record. A foreign holder's version is its expiry as it is
// written: the peer has nothing else that tells one of its grants from the next.
func (p mutex) Decode(item protocol.Item) (protocol.Record, error) {
	d := decoder{item: item}
	r := protocol.Record{Key: d.key(p.schema)}
	d.kind("")
	holder := d.name(mutexHolder)
	token := d.token()
	if holder == mutexFree {
		r.Released = true // whatever the rest is: a grant writes all of it anew
	} else {
		r.ExpiresAt = p.decodeExpires(&d)
		if owner, version := parseHolder(holder); d.isOurs(owner, version) {
			d.required(attrToken)
			r.Owner, r.Version, r.Token, r.Grant = owner, version, token, d.text(attrGrant)
		} else if expires, ok := item[mutexExpires].(*types.AttributeValueMemberN); ok {
			r.Owner, r.Version = holder, expires.Value
		}
	}
	if d.err != nil {
		return protocol.Record{Key: r.Key}, d.err
	}
	return r, nil
}
