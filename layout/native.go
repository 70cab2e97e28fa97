package layout

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Native is leasehold's own layout: the awslabs Java client's attributes plus
// token, grant id, grant time and TTL. For a table that only leasehold writes.
type Native struct {
	PartitionKey string // default "key"
	SortKey      string // default none
	SortValue    string // sort key of a call that names none; default: such a call is an error
	TTL          string // default "expiresAt"; "-" for none
}

// Name returns "native".
func (Native) Name() string { return "native" }

// Capabilities says that the layout can do everything but slots.
func (n Native) Capabilities() Capabilities {
	return Capabilities{
		Expiry:                 Observed,
		EveryGrantFenced:       true,
		FencingSurvivesRelease: true,
		Data:                   true,
		Attributes:             true,
		KeepOnRelease:          true,
		DeleteOnRelease:        true,
		SortKey:                n.SortKey != "",
		TTL:                    n.TTL != "-",
		LeaseStep:              time.Millisecond,
	}
}

// Protocol is for package leasehold. The error lists the names that clash.
func (n Native) Protocol() (protocol.Protocol, error) {
	p := native{
		partition: cmp.Or(n.PartitionKey, "key"),
		sort:      n.SortKey,
		sortValue: n.SortValue,
		ttl:       cmp.Or(n.TTL, attrExpiresAt),
	}
	if p.ttl == "-" {
		p.ttl = ""
	}
	var errs []error
	taken := map[string]string{}
	for _, name := range nativeAttributes {
		taken[name] = "an attribute of the record"
	}
	claim := func(role, name string) {
		if name == "" {
			return
		}
		if by, clash := taken[name]; clash {
			errs = append(errs, fmt.Errorf("layout: native: %s %q is %s already", role, name, by))
		}
		taken[name] = "the " + role
	}
	claim("partition key", p.partition)
	claim("sort key", p.sort)
	claim("TTL attribute", p.ttl)
	if p.sortValue != "" && p.sort == "" {
		errs = append(errs, errors.New("layout: native: SortValue needs SortKey, the attribute's name"))
	}
	return p, errors.Join(errs...)
}

// The attributes of a native record. Those of the awslabs Java client come
// first: its listing throws on a row without them, so every row has them.
const (
	attrOwner     = "ownerName"
	attrLease     = "leaseDuration"
	attrVersion   = "recordVersionNumber"
	attrReleased  = "isReleased"
	attrData      = "data"
	attrGrant     = "grantId"
	attrToken     = "fencingToken"
	attrGrantedAt = "grantedAt"
	attrExpiresAt = "expiresAt"
	attrKind      = "kind"
	attrSession   = "session"
	attrWaiters   = "waiters"
)

var nativeAttributes = []string{
	attrOwner, attrLease, attrVersion, attrReleased, attrData,
	attrGrant, attrToken, attrGrantedAt, attrKind, attrSession, attrWaiters,
	// Of rows of other kinds, which later formats may put on a lock's own.
	"dead", "permits", "readers", "writer", "intent",
}

// maxToken leaves room for one more grant below 2^53-1, the largest integer
// that JSON readers with doubles keep exact (RFC 8259, section 6).
const maxToken = 1<<53 - 2

// DynamoDB's limits of key values, in bytes (Service quotas, "Partition keys
// and sort keys").
const (
	maxPartitionBytes = 2048
	maxSortBytes      = 1024
)

type native struct{ partition, sort, sortValue, ttl string }

func (p native) KeyNames() (partition, sort string) { return p.partition, p.sort }

func (p native) TTLName() string { return p.ttl }

func (p native) Complete(k protocol.Key) protocol.Key {
	k.Sort = cmp.Or(k.Sort, p.sortValue)
	return k
}

func (p native) Reserved(name string) bool {
	switch name {
	case p.partition, p.sort, p.ttl, attrExpiresAt:
		return true
	}
	return slices.Contains(nativeAttributes, name)
}

func (p native) Key(k protocol.Key) (protocol.Item, error) {
	item := protocol.Item{p.partition: text(k.Partition)}
	if err := keyBytes("key", k.Partition, maxPartitionBytes); err != nil {
		return nil, err
	}
	if p.sort != "" {
		if err := keyBytes("sort key", k.Sort, maxSortBytes); err != nil {
			return nil, err
		}
		item[p.sort] = text(k.Sort)
	}
	return item, nil
}

func keyBytes(what, s string, most int) error {
	switch {
	case s == "":
		return fmt.Errorf("the %s is empty", what)
	case len(s) > most:
		return fmt.Errorf("the %s has %d bytes: DynamoDB takes %d", what, len(s), most)
	case !utf8.ValidString(s):
		// JSON would replace what is not, and make one key of several.
		return fmt.Errorf("the %s is not UTF-8", what)
	}
	return nil
}

func (p native) Grant(g protocol.Grant) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(g.Key))
	p.setGrant(w, g)
	token := w.Name(attrToken)
	free := fmt.Sprintf("(%s = %s", w.Name(attrReleased), w.Text("1"))
	if len(g.Takeable) > 0 {
		free += " OR " + w.In(attrVersion, g.Takeable)
	}
	free += fmt.Sprintf(") AND attribute_not_exists(%s)"+
		// A delayed duplicate of this very request must not grant again.
		" AND (attribute_not_exists(%[2]s) OR %[2]s <> %[3]s)"+
		" AND (attribute_not_exists(%[4]s) OR %[4]s BETWEEN %[5]s AND %[6]s)",
		w.Name(attrKind), w.Name(attrGrant), w.Text(g.Version),
		token, w.Value(number(0)), w.Value(number(maxToken)))
	if g.IfExists {
		w.Where(free)
	} else {
		w.Where(fmt.Sprintf("attribute_not_exists(%s) OR (%s)", w.Name(p.partition), free))
	}
	return w
}

func (p native) HandOver(h protocol.Hold, g protocol.Grant) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(g.Key))
	p.setGrant(w, g)
	token := w.Name(attrToken)
	w.Where(p.held(w, h) + fmt.Sprintf(" AND %s BETWEEN %s AND %s", token, w.Value(number(0)), w.Value(number(maxToken))))
	return w
}

// setGrant writes what every grant writes. A token that was lost with its
// record restarts from the clock, above all that were ever given unless the
// clocks differ by more than the record was old.
func (p native) setGrant(w *protocol.Write, g protocol.Grant) {
	w.Set(attrOwner, text(g.Owner))
	w.Set(attrLease, leaseMillis(g.Lease))
	w.Set(attrVersion, text(g.Version))
	w.Set(attrGrant, text(g.Version))
	w.Set(attrGrantedAt, number(g.Now.UnixMilli()))
	w.SetTo(attrToken, fmt.Sprintf("if_not_exists(%s, %s) + %s",
		w.Name(attrToken), w.Value(number(g.Now.UnixMicro())), w.Value(number(1))))
	w.Remove(attrReleased)
	if p.ttl != "" {
		w.Remove(p.ttl)
	}
	if p.ttl != attrExpiresAt && p.partition != attrExpiresAt && p.sort != attrExpiresAt {
		// Left by a client with the default TTL name: the table's TTL may
		// still look at it, and would delete a lock that is held.
		w.Remove(attrExpiresAt)
	}
	carry(w, g.Changes)
}

func (p native) Renew(h protocol.Hold, version string, lease time.Duration, c protocol.Changes) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(h.Key))
	w.Set(attrVersion, text(version))
	w.Set(attrLease, leaseMillis(lease))
	carry(w, c)
	w.Where(p.held(w, h))
	return w
}

func (p native) Release(h protocol.Hold, version string, expires time.Time, c protocol.Changes) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(h.Key))
	p.setReleased(w, version, expires)
	carry(w, c)
	w.Where(p.held(w, h))
	return w
}

func (p native) Delete(h protocol.Hold) *protocol.Write {
	w := protocol.NewDelete(p.mustKey(h.Key))
	w.Where(p.held(w, h))
	return w
}

func (p native) Break(r protocol.Record, version string, expires time.Time, unrenewed bool) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(r.Key))
	p.setReleased(w, version, expires)
	owner := w.Name(attrOwner) + " = " + w.Text(r.Owner)
	free := "attribute_not_exists(" + w.Name(attrReleased) + ")"
	if r.Grant == "" || unrenewed {
		w.Where(owner + " AND " + w.In(attrVersion, []string{r.Version}) + " AND " + free)
	} else {
		w.Where(owner + " AND " + w.In(attrGrant, []string{r.Grant}) + " AND " + free)
	}
	return w
}

// setReleased leaves owner and lease in place: the peers' readers need them.
func (p native) setReleased(w *protocol.Write, version string, expires time.Time) {
	w.Set(attrReleased, text("1"))
	w.Set(attrVersion, text(version))
	if p.ttl != "" && !expires.IsZero() {
		w.Set(p.ttl, number(expires.Unix()))
	}
}

// held is the condition of every write on a grant that is held.
func (p native) held(w *protocol.Write, h protocol.Hold) string {
	clauses := []string{
		w.In(attrGrant, h.Grants),
		w.Name(attrOwner) + " = " + w.Text(h.Owner),
		"attribute_not_exists(" + w.Name(attrReleased) + ")",
		w.In(attrVersion, h.Versions),
	}
	if h.Token != 0 {
		clauses = append(clauses, w.Name(attrToken)+" = "+w.Value(number(h.Token)))
	}
	return strings.Join(clauses, " AND ")
}

func carry(w *protocol.Write, c protocol.Changes) {
	switch {
	case c.SetData && c.Data == nil:
		w.Remove(attrData)
	case c.SetData:
		w.Set(attrData, &types.AttributeValueMemberB{Value: c.Data})
	case c.InitialData != nil:
		w.SetTo(attrData, fmt.Sprintf("if_not_exists(%s, %s)",
			w.Name(attrData), w.Value(&types.AttributeValueMemberB{Value: c.InitialData})))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Attributes)) {
		if v := c.Attributes[name]; v == nil {
			w.Remove(name)
		} else {
			w.Set(name, v)
		}
	}
}

// mustKey encodes a key that Key has accepted before.
func (p native) mustKey(k protocol.Key) protocol.Item {
	item := protocol.Item{p.partition: text(k.Partition)}
	if p.sort != "" {
		item[p.sort] = text(k.Sort)
	}
	return item
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// leaseMillis rounds up: a lease is never shorter than asked.
func leaseMillis(d time.Duration) types.AttributeValue {
	ms := d.Milliseconds()
	if d%time.Millisecond > 0 {
		ms++
	}
	return text(strconv.FormatInt(ms, 10))
}
