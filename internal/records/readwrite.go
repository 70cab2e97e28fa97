package records

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Attributes of a row that one writer or several readers hold. Grants are the
// names in the maps of readers and of their tokens, which are apart because an
// update cannot put what it reckons into a map that it makes. The writer's token
// is the row's: nobody else is granted while there is a writer.
const (
	attrReaders = "readers"
	attrTokens  = "tokens"
	attrWriter  = "writer"
	attrIntent  = "intent"
)

// Attributes of the map of a writer that has left.
const (
	attrLast         = "last"         // its grant, which does not come again
	attrReadersUntil = "readersUntil" // epoch milliseconds: until then readers go first
	attrReadersFor   = "readersFor"   // milliseconds, for those whose clock differs
)

// maxReaders bounds the row, and with it what a write costs.
const maxReaders = 100

// ReadWrite spells the rows of read/write locks. They read as records for a
// peer's listing, and as no lock for its grants.
func (p native) ReadWrite(m protocol.Mode, noWait bool) protocol.Side {
	return readWrite{native: p, mode: m, noWait: noWait}
}

type readWrite struct {
	native
	mode   protocol.Mode // of the grants to be made, or of the entry
	noWait bool          // does not let readers go first
	grant  string        // whose entry it is
}

// Of is the protocol of the entry of one grant.
func (p readWrite) Of(grant string) protocol.Protocol {
	p.grant = grant
	return p
}

// Grant adds a reader, or puts the writer in everybody's place. A map that is
// not there cannot be added to: the row's first reader makes it, if g.Create.
func (p readWrite) Grant(g protocol.Grant) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(g.Key))
	w.Set(attrKind, text(protocol.KindReadWrite))
	w.Set(p.owner, text("see "+attrWriter+" and "+attrReaders))
	w.Set(p.lease, p.encodeLease(time.Hour)) // a peer that knows nothing of this waits
	w.Set(p.version, text(protocol.KindReadWrite))
	for _, name := range p.removed {
		w.Remove(name)
	}
	if p.mode == protocol.ModeRead {
		p.addReader(w, g)
	} else {
		p.setWriter(w, g)
	}
	return w
}

func (p readWrite) addReader(w *protocol.Write, g protocol.Grant) {
	entry := p.entry(g, "")
	if g.Create {
		token := number(g.Now.UnixMicro() + 1)
		w.Set(attrToken, token)
		w.Set(attrReaders, &types.AttributeValueMemberM{Value: protocol.Item{g.Version: entry}})
		w.Set(attrTokens, &types.AttributeValueMemberM{Value: protocol.Item{g.Version: token}})
		w.Where(fmt.Sprintf("attribute_not_exists(%s)", w.Name(p.Partition)))
		return
	}
	next := w.Name(attrToken) + " + " + w.Value(number(1))
	w.SetTo(attrToken, next)
	w.SetPath(w.Path(attrReaders, g.Version), w.Value(entry))
	w.SetPath(w.Path(attrTokens, g.Version), next)
	conditions := []string{p.isRow(w), tokenInRange(w)}
	// Of several attempts, which do not keep each other out, one is there at a
	// time: whoever holds it loses it to no later one that arrives late.
	for _, mine := range append(slices.Clone(g.Takeable), g.Version) {
		if !slices.ContainsFunc(g.Dead, func(r protocol.Record) bool { return r.Grant == mine }) {
			conditions = append(conditions, "attribute_not_exists("+w.Path(attrReaders, mine)+")")
		}
	}
	readers, writer, intent := byPlace(g.Dead)
	for _, r := range readers {
		p.removeReader(w, r.Grant)
		conditions = append(conditions, p.shows(w, r))
	}
	if len(writer) > 0 {
		w.Set(attrWriter, noEntries)
	}
	if len(intent) > 0 {
		w.Remove(attrIntent)
	}
	room := w.Value(number(int64(maxReaders + len(readers))))
	conditions = append(conditions,
		fmt.Sprintf("size(%s) < %s", w.Name(attrReaders), room),
		p.withoutWriter(w, writer), p.withoutIntent(w, intent))
	w.Where(strings.Join(conditions, " AND "))
}

func (p readWrite) setWriter(w *protocol.Write, g protocol.Grant) {
	setToken(w, g)
	w.Set(attrWriter, p.entry(g, g.Version))
	w.Set(attrReaders, noEntries)
	w.Set(attrTokens, noEntries)
	w.Remove(attrIntent)

	last := w.Path(attrWriter, attrLast)
	conditions := []string{p.isRow(w), tokenInRange(w),
		fmt.Sprintf("(attribute_not_exists(%[1]s) OR %[1]s <> %[2]s)", last, w.Text(g.Version))}
	readers, writer, intent := byPlace(g.Dead)
	for _, r := range readers {
		conditions = append(conditions, p.shows(w, r))
	}
	writer, intent = append(writer, g.Takeable...), append(intent, g.Intents...)
	free := "attribute_not_exists(" + w.Path(attrWriter, attrGrant) + ")"
	if !p.noWait {
		until := w.Path(attrWriter, attrReadersUntil)
		free = fmt.Sprintf("%s AND (attribute_not_exists(%s) OR %[2]s <= %s)", free, until, w.Value(number(g.Now.UnixMilli())))
	}
	conditions = append(conditions,
		fmt.Sprintf("size(%s) = %s", w.Name(attrReaders), w.Value(number(int64(len(readers))))),
		p.or(w, attrWriter, free, writer), p.withoutIntent(w, intent))
	condition := strings.Join(conditions, " AND ")
	if !g.IfExists {
		condition = fmt.Sprintf("attribute_not_exists(%s) OR (%s)", w.Name(p.Partition), condition)
	}
	w.Where(condition)
}

// byPlace tells the dead apart by where in the row they are: readers, and the
// versions that stand in the writer's place and in that of the intent.
func byPlace(dead []protocol.Record) (readers []protocol.Record, writer, intent []string) {
	for _, d := range dead {
		switch d.Mode {
		case protocol.ModeRead:
			readers = append(readers, d)
		case protocol.ModeIntent:
			intent = append(intent, d.Version)
		default:
			writer = append(writer, d.Version)
		}
	}
	return readers, writer, intent
}

// noEntries is a map without any.
var noEntries = &types.AttributeValueMemberM{Value: protocol.Item{}}

// entry is what the row says of one grant, or intent; named within, if it is
// not by its place.
func (p readWrite) entry(g protocol.Grant, name string) types.AttributeValue {
	e := protocol.Item{
		p.owner: text(g.Owner), p.lease: p.encodeLease(g.Lease), p.version: text(g.Version),
		attrGrantedAt: number(g.Now.UnixMilli()),
	}
	if name != "" {
		e[attrGrant] = text(name)
	}
	return &types.AttributeValueMemberM{Value: e}
}

func (p readWrite) removeReader(w *protocol.Write, grant string) {
	w.RemovePath(w.Path(attrReaders, grant))
	w.RemovePath(w.Path(attrTokens, grant))
}

// isRow is the condition that the row is there, of this kind and with the maps
// that it needs.
func (p readWrite) isRow(w *protocol.Write) string {
	m := w.Text("M")
	return fmt.Sprintf("%s = %s AND attribute_type(%s, %s) AND attribute_type(%s, %[4]s) AND (attribute_not_exists(%[6]s) OR attribute_type(%[6]s, %[4]s))",
		w.Name(attrKind), w.Text(protocol.KindReadWrite), w.Name(attrReaders), m, w.Name(attrTokens), w.Name(attrWriter))
}

// shows is the condition that a reader's entry is as it was seen.
func (p readWrite) shows(w *protocol.Write, r protocol.Record) string {
	return w.PathIn(w.Path(attrReaders, r.Grant, p.version), []string{r.Version})
}

// withoutWriter is the condition that there is none, or one of these versions.
func (p readWrite) withoutWriter(w *protocol.Write, versions []string) string {
	return p.or(w, attrWriter, "attribute_not_exists("+w.Path(attrWriter, attrGrant)+")", versions)
}

// withoutIntent is the same for an intent, which leaves nothing behind.
func (p readWrite) withoutIntent(w *protocol.Write, versions []string) string {
	return p.or(w, attrIntent, "attribute_not_exists("+w.Name(attrIntent)+")", versions)
}

func (p readWrite) or(w *protocol.Write, place, condition string, versions []string) string {
	if len(versions) > 0 {
		condition += " OR " + w.PathIn(w.Path(place, p.version), versions)
	}
	return "(" + condition + ")"
}

// HandOver is for layouts whose records have one holder.
func (p readWrite) HandOver(protocol.Hold, protocol.Grant) *protocol.Write {
	panic("records: a read/write lock is never handed over")
}

func (p readWrite) Renew(h protocol.Hold, r protocol.Renewal) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(h.Key))
	place := p.place(h.Grants[0])
	w.SetPath(w.Path(append(place, p.version)...), w.Text(r.Version))
	w.SetPath(w.Path(append(place, p.lease)...), w.Value(p.encodeLease(r.Lease)))
	w.Where(p.held(w, h))
	return w
}

// place is the path of a grant's entry.
func (p readWrite) place(grant string) []string {
	if p.mode == protocol.ModeRead {
		return []string{attrReaders, grant}
	}
	return []string{attrWriter}
}

func (p readWrite) Release(h protocol.Hold, r protocol.Release) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(h.Key))
	if p.mode == protocol.ModeRead {
		for _, grant := range h.Grants {
			p.removeReader(w, grant)
		}
	} else {
		p.setLeft(w, h.Grants[0], r)
	}
	w.Where(p.held(w, h))
	return w
}

// setLeft ends the writer's grant. The row is free then but for an intent, and
// every grant takes the expiry away.
func (p readWrite) setLeft(w *protocol.Write, grant string, r protocol.Release) {
	left := protocol.Item{attrLast: text(grant), p.version: text(r.Version)}
	if r.ReadersFirst > 0 {
		left[attrReadersUntil] = number(r.Now.Add(r.ReadersFirst).UnixMilli())
		left[attrReadersFor] = number(ceil(r.ReadersFirst, time.Millisecond))
	}
	w.Set(attrWriter, &types.AttributeValueMemberM{Value: left})
	if p.TTL != "" && !r.Expires.IsZero() {
		w.Set(p.TTL, number(r.Expires.Unix()))
	}
}

// Delete removes the entry: others may be in the row.
func (p readWrite) Delete(h protocol.Hold) *protocol.Write {
	return p.Release(h, protocol.Release{Version: protocol.NewVersion()})
}

func (p readWrite) Guard(h protocol.Hold) *protocol.Write {
	w := protocol.NewCheck(p.mustKey(h.Key))
	w.Where(p.stands(w, h.Grants[0], h))
	return w
}

// Break removes the entry that r shows.
func (p readWrite) Break(r protocol.Record, version string, expires time.Time) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(r.Key))
	p.mode = r.Mode
	if p.mode == protocol.ModeRead {
		p.removeReader(w, r.Grant)
	} else {
		p.setLeft(w, r.Grant, protocol.Release{Version: version, Expires: expires})
	}
	w.Where(p.stands(w, r.Grant, protocol.Hold{Owner: r.Owner, Token: r.Token}) +
		" AND " + w.PathIn(w.Path(append(p.place(r.Grant), p.version)...), []string{r.Version}))
	return w
}

// held is the condition of every write on an entry. Of several grants, which
// were never renewed, each has its own version.
func (p readWrite) held(w *protocol.Write, h protocol.Hold) string {
	ways := make([]string, len(h.Grants))
	for i, grant := range h.Grants {
		versions := h.Versions
		if len(h.Grants) > 1 {
			versions = []string{grant}
		}
		ways[i] = p.stands(w, grant, h) + " AND " + w.PathIn(w.Path(append(p.place(grant), p.version)...), versions)
	}
	return "(" + strings.Join(ways, ") OR (") + ")"
}

// stands is the condition that the grant has not ended, whatever its version.
func (p readWrite) stands(w *protocol.Write, grant string, h protocol.Hold) string {
	conditions := []string{w.Path(append(p.place(grant), p.owner)...) + " = " + w.Text(h.Owner)}
	token := []string{attrTokens, grant}
	if p.mode != protocol.ModeRead {
		conditions = append(conditions, w.Path(attrWriter, attrGrant)+" = "+w.Text(grant))
		token = []string{attrToken}
	}
	if h.Token != 0 {
		conditions = append(conditions, w.Path(token...)+" = "+w.Value(number(h.Token)))
	}
	return strings.Join(conditions, " AND ")
}

// Intend posts the intent of a writer that only readers keep out, with intents
// that are its own, or dead.
func (p readWrite) Intend(by protocol.Blockers, g protocol.Grant) *protocol.Write {
	if p.mode != protocol.ModeWrite || len(by.By) == 0 {
		return nil
	}
	versions := slices.Clone(g.Intents)
	for _, dead := range g.Dead {
		versions = append(versions, dead.Version)
	}
	for _, b := range by.By {
		if b.Mode != protocol.ModeRead && (b.Mode != protocol.ModeIntent || !slices.Contains(versions, b.Version)) {
			return nil
		}
	}
	w := protocol.NewUpdate(p.mustKey(g.Key))
	grant := append(slices.Clone(g.Intents), g.Version)[0] // renewals leave it, as those of a lock do
	w.Set(attrIntent, p.entry(g, grant))
	w.Where(strings.Join([]string{p.isRow(w), p.withoutWriter(w, nil), p.withoutIntent(w, versions)}, " AND "))
	return w
}

// Sweep removes the entries of dead readers.
func (p readWrite) Sweep(key protocol.Key, dead []protocol.Record) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(key))
	conditions := []string{p.isRow(w)}
	for _, r := range dead {
		p.removeReader(w, r.Grant)
		conditions = append(conditions, p.shows(w, r))
	}
	w.Where(strings.Join(conditions, " AND "))
	return w
}

// Withdraw removes the intent that is one of these grants.
func (p readWrite) Withdraw(h protocol.Hold) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(h.Key))
	w.Remove(attrIntent)
	w.Where(w.PathIn(w.Path(attrIntent, attrGrant), h.Grants))
	return w
}

// row is a read/write row as read.
type row struct {
	token   int64
	writer  *protocol.Record // or
	left    *protocol.Record // a writer that lets readers go first
	until   time.Time        // by the clock of the writer that left
	version string           // of its release
	last    string           // its grant
	readers []protocol.Record
	intent  *protocol.Record
}

func (p readWrite) decodeRow(item protocol.Item) (row, protocol.Key, error) {
	d := decoder{item: item}
	key := d.key(p.schema)
	d.kind(protocol.KindReadWrite)
	d.required(attrToken)
	r := row{token: d.token()}
	writer := d.entries(attrWriter)
	if writer[attrGrant] != nil {
		r.writer = p.decodeEntry(&d, attrWriter, writer, protocol.Record{Key: key, Mode: protocol.ModeWrite, Token: r.token})
	} else if len(writer) > 0 {
		left := decoder{item: writer}
		r.version, r.last = left.text(p.version), left.text(attrLast)
		if left.has(attrReadersUntil) {
			r.until = left.time(attrReadersUntil, time.UnixMilli)
			ms, _ := left.integer(attrReadersFor)
			r.left = &protocol.Record{Key: key, Mode: protocol.ModeReadersFirst, Grant: r.last, Version: r.version, Lease: time.Duration(ms) * time.Millisecond}
		}
		d.within(attrWriter, left)
	}
	if intent := d.entries(attrIntent); intent != nil {
		r.intent = p.decodeEntry(&d, attrIntent, intent, protocol.Record{Key: key, Mode: protocol.ModeIntent})
	}
	d.required(attrTokens)
	tokens := decoder{item: d.entries(attrTokens)}
	d.required(attrReaders)
	readers := d.entries(attrReaders)
	for _, grant := range slices.Sorted(maps.Keys(readers)) {
		entry, ok := readers[grant].(*types.AttributeValueMemberM)
		if !ok {
			d.fail(attrReaders, "has an entry that is not a map")
			continue
		}
		tokens.required(grant)
		token, _ := tokens.integer(grant)
		known := protocol.Record{Key: key, Mode: protocol.ModeRead, Grant: grant, Token: token}
		r.readers = append(r.readers, *p.decodeEntry(&d, attrReaders, entry.Value, known))
	}
	d.within(attrTokens, tokens)
	return r, key, d.err
}

// decodeEntry completes what is known of an entry.
func (p readWrite) decodeEntry(d *decoder, place string, entry protocol.Item, r protocol.Record) *protocol.Record {
	e := decoder{item: entry}
	r.Owner, r.Version, r.Lease = e.text(p.owner), e.text(p.version), p.decodeLease(&e, p.lease)
	r.GrantedAt = e.time(attrGrantedAt, time.UnixMilli)
	if r.Grant == "" {
		r.Grant = e.text(attrGrant)
	}
	d.within(place, e)
	return &r
}

// entries reads a map; nil: there is none.
func (d *decoder) entries(name string) protocol.Item {
	switch v := d.item[name].(type) {
	case nil:
		return nil
	case *types.AttributeValueMemberM:
		if v.Value == nil {
			return protocol.Item{}
		}
		return v.Value
	default:
		d.fail(name, "is not a map")
		return nil
	}
}

// within takes over what was wrong in a map.
func (d *decoder) within(name string, inner decoder) {
	if problem, ok := inner.err.(*protocol.DecodeError); ok { // decoders make no others
		d.fail(name+"."+problem.Attribute, problem.Problem)
	}
}

// Blockers are, for a reader, the writer and the intent, and when there is no
// room the other readers, of whom one must go; for a writer everybody.
func (p readWrite) Blockers(item protocol.Item, now time.Time) (protocol.Blockers, error) {
	r, _, err := p.decodeRow(item)
	if err != nil {
		return protocol.Blockers{}, err
	}
	var by protocol.Blockers
	for _, b := range []*protocol.Record{r.writer, r.intent} {
		if b != nil {
			by.By = append(by.By, *b)
		}
	}
	if p.mode == protocol.ModeRead {
		if len(by.By) == 0 && len(r.readers) >= maxReaders {
			return protocol.Blockers{By: r.readers, Any: true}, nil
		}
		return by, nil
	}
	if r.left != nil && !p.noWait && now.UnixMilli() < r.until.UnixMilli() {
		by.By = append(by.By, *r.left)
	}
	by.By = append(by.By, r.readers...)
	return by, nil
}

// Entries returns who holds the row, the longest first; a free one is one
// record without a holder.
func (p native) Entries(item protocol.Item) ([]protocol.Record, error) {
	return readWrite{native: p}.entriesOf(item)
}

func (p readWrite) entriesOf(item protocol.Item) ([]protocol.Record, error) {
	r, key, err := p.decodeRow(item)
	switch {
	case err != nil:
		return nil, err
	case r.writer != nil:
		return []protocol.Record{*r.writer}, nil
	case len(r.readers) == 0:
		return []protocol.Record{{Key: key, Released: true, Token: r.token, Version: r.version, Grant: r.last, Mode: protocol.ModeWrite}}, nil
	}
	slices.SortStableFunc(r.readers, func(a, b protocol.Record) int { return a.GrantedAt.Compare(b.GrantedAt) })
	return r.readers, nil
}

// Decode reads the entry of the grant; if it is not there, who has come in its
// place.
func (p readWrite) Decode(item protocol.Item) (protocol.Record, error) {
	all, err := p.entriesOf(item)
	if err != nil {
		return protocol.Record{Key: p.KeyOf(item)}, err
	}
	if i := slices.IndexFunc(all, func(r protocol.Record) bool { return r.Grant == p.grant && !r.Released }); i >= 0 {
		return all[i], nil
	}
	if p.mode == protocol.ModeRead && (all[0].Released || all[0].Mode == protocol.ModeRead) { // who takes nobody's place
		return protocol.Record{Key: all[0].Key, Released: true, Mode: protocol.ModeRead}, nil
	}
	return all[0], nil
}
