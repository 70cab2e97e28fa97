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
	return lock{mutex{c}}, err
}

// Attributes of a dyndb-mutex record, and the value of the attribute "holder" in a free record. A
// dyndb-mutex client can release every lock whose "holder" is the client's name. Leasehold stores
// the owner and the version there. No client's name equals this value, because each write has a new
// version.
const (
	mutexHolder  = "holder"
	mutexExpires = "expire_ts"
	mutexFree    = "__empty__"
)

// mutexCollect is the time from a record's expiry to its TTL value: two days, as in the library
// dyndb-mutex. That library writes milliseconds, which DynamoDB reads as a time far in the future.
// Leasehold writes seconds.
const mutexCollect = 48 * time.Hour

type mutex struct{ clocked }

// holderOf returns the value that leasehold writes to the attribute "holder" for an owner and a
// version.
func holderOf(owner, version string) string { return owner + "/" + version }

// parseHolder returns the owner and the version from a value that holderOf has returned. For any
// other value, the owner may be empty.
func parseHolder(holder string) (owner, version string) {
	i := strings.LastIndexByte(holder, '/')
	return holder[:max(i, 0)], holder[i+1:]
}

func (p mutex) Owned() bool { return true }

func (p mutex) Reserved(name string) bool {
	return slices.Contains([]string{p.Partition, p.TTL, mutexHolder, mutexExpires}, name) || slices.Contains(reserved, name)
}

func (p mutex) keeps() bool { return true }

func (p mutex) grantable(w *protocol.Write, g protocol.Grant) []string {
	conditions := []string{w.Name(mutexHolder) + " = " + w.Text(mutexFree)}
	// Accept any owner: a client that has resumed another client's grant still writes the other
	// client's owner.
	for _, v := range g.Takeable {
		conditions = append(conditions, "contains("+w.Name(mutexHolder)+", "+w.Text("/"+v)+")")
	}
	if g.Dead != nil {
		conditions = append(conditions, p.isRecord(w, *g.Dead)+" AND "+p.isExpired(w, g.Now))
	}
	return conditions
}

func (p mutex) setGrant(w *protocol.Write, g protocol.Grant) {
	setIDAndToken(w, g)
	p.setLease(w, g.Owner, g.Version, g.Lease, g.Now)
}

// setLease adds to w the attributes that every grant and every renewal sets.
func (p mutex) setLease(w *protocol.Write, owner, version string, lease time.Duration, now time.Time) {
	w.Set(mutexHolder, text(holderOf(owner, version)))
	w.Set(p.TTL, number(endOf(now.Add(mutexCollect), lease, time.Second)))
	p.setExpires(w, now, lease)
}

func (p mutex) setRenewal(w *protocol.Write, h protocol.Hold, r protocol.Renewal) {
	p.setLease(w, h.Owner, r.Version, r.Lease, r.Now)
}

// setRelease adds to w the attributes that a release by the library dyndb-mutex sets. It also sets
// the TTL value to r.Expires, or removes the TTL value if r.Expires is zero.
func (p mutex) setRelease(w *protocol.Write, r protocol.Release) {
	w.Set(mutexHolder, text(mutexFree))
	w.Set(mutexExpires, number(0))
	if r.Expires.IsZero() {
		w.Remove(p.TTL)
	} else {
		w.Set(p.TTL, number(r.Expires.Unix()))
	}
}

func (p mutex) isRecord(w *protocol.Write, r protocol.Record) string {
	if r.Grant != "" {
		return p.shows(w, r.Owner, []string{r.Version})
	}
	return w.Name(mutexHolder) + " = " + w.Text(r.Owner) + " AND " + w.Name(mutexExpires) + " = " + w.Value(decimal(r.Version))
}

func (p mutex) isCurrent(w *protocol.Write, h protocol.Hold) string {
	return isGrant(w, h) + " AND " + w.Name(mutexHolder) + " <> " + w.Text(mutexFree)
}

// shows returns the condition that the record contains the given owner and one of the
// versions.
func (p mutex) shows(w *protocol.Write, owner string, versions []string) string {
	holders := make([]string, len(versions))
	for i, v := range versions {
		holders[i] = holderOf(owner, v)
	}
	return w.In(mutexHolder, holders)
}

func (p mutex) held(w *protocol.Write, h protocol.Hold) string {
	return isGrant(w, h) + " AND " + p.shows(w, h.Owner, h.Versions)
}

// Decode decodes a record. For a grant by the library dyndb-mutex, the version is the
// expiry time, exactly as stored: nothing else distinguishes two grants of that library.
func (p mutex) Decode(item protocol.Item) (protocol.Record, error) {
	d := decoder{item: item}
	r := protocol.Record{Key: d.key(p.schema)}
	d.kind("")
	r.Broken, r.TakenOver = brokenOf(item), takenOverOf(item)
	holder := d.name(mutexHolder)
	token := d.token()
	if holder == mutexFree {
		r.Released = true // the expiry time and the grant id may be damaged: the next grant overwrites them
	} else {
		r.ExpiresAt = p.decodeExpires(&d)
		if owner, version := parseHolder(holder); d.isOurs(owner, version) {
			d.required(attrToken)
			r.Owner, r.Version, r.Token, r.Grant = owner, version, token, d.text(attrGrant)
			r.GrantedAt = protocol.VersionTime(r.Grant)
		} else if expires, ok := item[mutexExpires].(*types.AttributeValueMemberN); ok {
			r.Owner, r.Version = holder, expires.Value
		}
	}
	return d.record(r)
}
