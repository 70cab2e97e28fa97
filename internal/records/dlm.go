package records

import (
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

func newDLM(l layout.DynamoDLM) (protocol.Protocol, error) {
	key := schema{Schema: protocol.Schema{Partition: "resource_id"}}
	if !l.NoSlots {
		key.Sort, key.SortNumber, key.sortValue = "concurrency_id", true, "0"
	}
	c, err := newClocked(l.Name(), key, dlmExpires, time.Second, l.MaxSkew)
	if l.NoSlots {
		return dlm{c}, err
	}
	return slotted{dlm{c}}, err
}

// The attributes of a dynamo-dlm record. A peer's release code is 32
// hexadecimal digits, and stays for its grant. Ours has their form but is the
// version: new in every write, or a request that arrives late could renew what
// it no longer knows. No peer minds: each looks for its own code alone.
const (
	dlmCode    = "release_code"
	dlmExpires = "expires"
)

type dlm struct{ clocked }

func (p dlm) Owned() bool { return false }

func (p dlm) Reserved(name string) bool {
	return slices.Contains([]string{p.Partition, p.Sort, dlmCode, dlmExpires}, name) || slices.Contains(reserved, name)
}

func (p dlm) Grant(g protocol.Grant) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(g.Key))
	p.setGrant(w, g)
	var takeable, dead string
	if len(g.Takeable) > 0 {
		takeable = showsCode(w, g.Takeable...)
	}
	if len(g.Dead) > 0 {
		dead = p.isRecord(w, g.Dead[0]) + " AND " + p.isExpired(w, g.Now)
	}
	whereGrantable(w, g, p.Partition, takeable, dead)
	return w
}

// setGrant writes what every grant writes.
func (p dlm) setGrant(w *protocol.Write, g protocol.Grant) {
	setGrant(w, g)
	p.setLease(w, g.Version, g.Lease, g.Now)
}

// setLease writes what every grant and renewal writes.
func (p dlm) setLease(w *protocol.Write, version string, lease time.Duration, now time.Time) {
	w.Set(dlmCode, text(protocol.VersionHex(version)))
	p.setExpires(w, now, lease)
}

func (p dlm) HandOver(h protocol.Hold, g protocol.Grant) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(g.Key))
	p.setGrant(w, g)
	w.Where(p.held(w, h) + " AND " + tokenInRange(w))
	return w
}

func (p dlm) Renew(h protocol.Hold, r protocol.Renewal) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(h.Key))
	p.setLease(w, r.Version, r.Lease, r.Now)
	w.Where(p.held(w, h))
	return w
}

func (p dlm) Release(h protocol.Hold, _ protocol.Release) *protocol.Write {
	return p.Delete(h)
}

func (p dlm) Delete(h protocol.Hold) *protocol.Write {
	w := protocol.NewDelete(p.mustKey(h.Key))
	w.Where(p.held(w, h))
	return w
}

func (p dlm) Guard(h protocol.Hold) *protocol.Write {
	w := protocol.NewCheck(p.mustKey(h.Key))
	w.Where(isGrant(w, h))
	return w
}

func (p dlm) Break(r protocol.Record, _ string, _ time.Time) *protocol.Write {
	w := protocol.NewDelete(p.mustKey(r.Key))
	w.Where(p.isRecord(w, r))
	return w
}

func (p dlm) held(w *protocol.Write, h protocol.Hold) string {
	return isGrant(w, h) + " AND " + showsCode(w, h.Versions...)
}

// isRecord is the condition that the record is still as r shows it.
func (p dlm) isRecord(w *protocol.Write, r protocol.Record) string {
	if r.Grant == "" {
		return w.In(dlmCode, []string{r.Version}) // whatever a peer's code looks like
	}
	return showsCode(w, r.Version)
}

// showsCode is the condition that the record shows one of our versions.
func showsCode(w *protocol.Write, versions ...string) string {
	codes := make([]string, len(versions))
	for i, v := range versions {
		codes[i] = protocol.VersionHex(v)
	}
	return w.In(dlmCode, codes)
}

// Decode reads a record. A grant of a peer carries none of our attributes: it
// writes whole items.
func (p dlm) Decode(item protocol.Item) (protocol.Record, error) {
	d := decoder{item: item}
	r := protocol.Record{Key: d.key(p.schema)}
	d.kind("")
	r.Version = d.text(dlmCode)
	r.ExpiresAt = p.decodeExpires(&d)
	r.Token = d.token()
	if d.has(attrGrant) || d.has(attrToken) {
		r.Version = protocol.VersionOfHex(r.Version)
		d.required(attrToken)
		r.Grant = d.text(attrGrant)
	}
	if d.err != nil {
		return protocol.Record{Key: r.Key}, d.err
	}
	return r, nil
}
