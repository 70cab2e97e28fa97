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
	return lock{dlm{c}}, err
}

// Attributes of a dynamo-dlm record. Each grant has a release code of 32 hexadecimal digits.
// Leasehold stores its version there, and renewals change it, so DynamoDB rejects a late renewal. A
// dynamo-dlm client only checks whether the code is its own.
const (
	dlmCode    = "release_code"
	dlmExpires = "expires"
)

type dlm struct{ clocked }

func (p dlm) Owned() bool { return false }

func (p dlm) Reserved(name string) bool {
	return slices.Contains([]string{p.Partition, p.Sort, dlmCode, dlmExpires}, name) || slices.Contains(reserved, name)
}

func (p dlm) keeps() bool { return false }

func (p dlm) setRelease(*protocol.Write, protocol.Release) {}

func (p dlm) grantable(w *protocol.Write, g protocol.Grant) []string {
	var conditions []string
	if len(g.Takeable) > 0 {
		conditions = append(conditions, showsCode(w, g.Takeable...))
	}
	if g.Dead != nil {
		conditions = append(conditions, p.isRecord(w, *g.Dead)+" AND "+p.isExpired(w, g.Now))
	}
	return conditions
}

func (p dlm) setGrant(w *protocol.Write, g protocol.Grant) {
	setIDAndToken(w, g)
	p.setLease(w, g.Version, g.Lease, g.Now)
}

// setLease adds to w the attributes that every grant and every renewal sets.
func (p dlm) setLease(w *protocol.Write, version string, lease time.Duration, now time.Time) {
	w.Set(dlmCode, text(protocol.VersionHex(version)))
	p.setExpires(w, now, lease)
}

func (p dlm) setRenewal(w *protocol.Write, _ protocol.Hold, r protocol.Renewal) {
	p.setLease(w, r.Version, r.Lease, r.Now)
}

func (p dlm) isCurrent(w *protocol.Write, h protocol.Hold) string { return isGrant(w, h) }

func (p dlm) held(w *protocol.Write, h protocol.Hold) string {
	return isGrant(w, h) + " AND " + showsCode(w, h.Versions...)
}

func (p dlm) isRecord(w *protocol.Write, r protocol.Record) string {
	if r.Grant == "" {
		// A client of dynamo-dlm has written the release code. Compare the code exactly as it
		// was read, since it may have any form.
		return w.In(dlmCode, []string{r.Version})
	}
	return showsCode(w, r.Version)
}

// showsCode returns the condition that the record's release code is one of the given
// versions.
func showsCode(w *protocol.Write, versions ...string) string {
	codes := make([]string, len(versions))
	for i, v := range versions {
		codes[i] = protocol.VersionHex(v)
	}
	return w.In(dlmCode, codes)
}

// Decode decodes a record. A grant id or a token means that leasehold has written the record,
// because each grant by dynamo-dlm replaces the whole item.
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
		r.GrantedAt = protocol.VersionTime(r.Grant)
	}
	return d.record(r)
}
