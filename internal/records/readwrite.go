package records

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Attributes of the row of a read/write lock, which one writer or several readers
// hold. The maps of readers and of their tokens have grant ids as names. They are
// two maps, because an update cannot put a computed value into a map that it
// creates. The writer's token is the row's token: while there is a writer, no
// other grant is made.
const (
	attrReaders = "readers"
	attrTokens  = "tokens"
	attrWriter  = "writer"
	attrIntent  = "intent"
)

// Attributes of the writer's map after the writer has released.
const (
	attrLast         = "last"         // its grant id, which must not be granted again
	attrReadersUntil = "readersUntil" // epoch milliseconds: until then readers go first
	attrReadersFor   = "readersFor"   // the same as a length in milliseconds, for clients whose clock differs
)

// maxReaders bounds the size of the row, and so the cost of a write.
const maxReaders = 100

// ReadWrite encodes the rows of read/write locks. A peer can list them like locks,
// but its lease of an hour keeps it from taking one over.
func (p native) ReadWrite(m protocol.Mode, noWait bool) protocol.Side {
	return readWrite{versioned: p.record, mode: m, noWait: noWait}
}

type readWrite struct {
	versioned
	mode   protocol.Mode // of the grant to make, or of the entry
	noWait bool          // do not let readers go first
	grant  string        // id of the grant whose entry Decode reads
}

// Of returns the protocol for the entry of one grant.
func (p readWrite) Of(grant string) protocol.Protocol {
	p.grant = grant
	return p
}

// Grant adds a reader, or sets the writer and removes everybody else. An update
// cannot add to a map that does not exist: with g.Create, the first reader
// creates the row and its maps.
func (p readWrite) Grant(g protocol.Grant) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(g.Key))
	w.Set(attrKind, text(protocol.KindReadWrite))
	w.Set(p.owner, text("see "+attrWriter+" and "+attrReaders))
	w.Set(p.lease, p.encodeLease(time.Hour)) // a peer that does not know this kind of row waits
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
		token := number(firstToken(g.Now))
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
	// Several attempts of this client do not exclude each other. So each
	// requires that the others are absent: a delayed attempt then cannot be
	// applied beside one that the client already holds.
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

// byPlace sorts the dead by their place in the row: readers, and the versions in
// the writer's place and in the intent's.
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

// noEntries is an empty map.
var noEntries = &types.AttributeValueMemberM{Value: protocol.Item{}}

// entry returns the map for one grant or intent. It contains the grant id, unless
// that is "" because the entry's name already is the id.
func (p readWrite) entry(g protocol.Grant, id string) types.AttributeValue {
	e := protocol.Item{
		p.owner: text(g.Owner), p.lease: p.encodeLease(g.Lease), p.version: text(g.Version),
		attrGrantedAt: number(g.Now.UnixMilli()),
	}
	if id != "" {
		e[attrGrant] = text(id)
	}
	if p.vouches(g.Lease) {
		e[attrLeaseEnds] = leaseEnds(g.Version, g.Now, g.Lease)
	}
	return &types.AttributeValueMemberM{Value: e}
}

func (p readWrite) removeReader(w *protocol.Write, grant string) {
	w.RemovePath(w.Path(attrReaders, grant))
	w.RemovePath(w.Path(attrTokens, grant))
}

// isRow returns the condition that the row exists, has this kind and has the maps
// that a write needs.
func (p readWrite) isRow(w *protocol.Write) string {
	m := w.Text("M")
	return fmt.Sprintf("%s = %s AND attribute_type(%s, %s) AND attribute_type(%s, %[4]s) AND (attribute_not_exists(%[6]s) OR attribute_type(%[6]s, %[4]s))",
		w.Name(attrKind), w.Text(protocol.KindReadWrite), w.Name(attrReaders), m, w.Name(attrTokens), w.Name(attrWriter))
}

// shows returns the condition that a reader's entry has not changed since r.
func (p readWrite) shows(w *protocol.Write, r protocol.Record) string {
	return w.PathIn(w.Path(attrReaders, r.Grant, p.version), []string{r.Version})
}

// withoutWriter returns the condition that there is no writer, or one with one of
// these versions.
func (p readWrite) withoutWriter(w *protocol.Write, versions []string) string {
	return p.or(w, attrWriter, "attribute_not_exists("+w.Path(attrWriter, attrGrant)+")", versions)
}

// withoutIntent returns the same condition for an intent. Unlike a writer, an
// intent leaves nothing in the row when it goes.
func (p readWrite) withoutIntent(w *protocol.Write, versions []string) string {
	return p.or(w, attrIntent, "attribute_not_exists("+w.Name(attrIntent)+")", versions)
}

func (p readWrite) or(w *protocol.Write, place, condition string, versions []string) string {
	if len(versions) > 0 {
		condition += " OR " + w.PathIn(w.Path(place, p.version), versions)
	}
	return "(" + condition + ")"
}

// HandOver is never called: only a lock with one holder can be handed over.
func (p readWrite) HandOver(protocol.Hold, protocol.Grant) *protocol.Write {
	panic("records: a read/write lock is never handed over")
}

func (p readWrite) Renew(h protocol.Hold, r protocol.Renewal) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(h.Key))
	place := p.place(h.Grants[0])
	w.SetPath(w.Path(append(place, p.version)...), w.Text(r.Version))
	w.SetPath(w.Path(append(place, p.lease)...), w.Value(p.encodeLease(r.Lease)))
	if p.vouches(r.Lease) {
		w.SetPath(w.Path(append(place, attrLeaseEnds)...), w.Value(leaseEnds(r.Version, r.Now, r.Lease)))
	}
	w.Where(p.held(w, h))
	return w
}

// place returns the path of a grant's entry.
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
		p.endWriter(w, h.Grants[0], r)
	}
	w.Where(p.held(w, h))
	return w
}

// endWriter ends the writer's grant. The row is free then, unless there is an
// intent. Every grant removes the expiry that this sets.
func (p readWrite) endWriter(w *protocol.Write, grant string, r protocol.Release) {
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

// Delete removes the entry, not the row: others may be in it.
func (p readWrite) Delete(h protocol.Hold) *protocol.Write {
	return p.Release(h, protocol.Release{Version: protocol.NewVersion()})
}

func (p readWrite) Guard(h protocol.Hold) *protocol.Write {
	w := protocol.NewCheck(p.mustKey(h.Key))
	w.Where(p.stands(w, h.Grants[0], h))
	return w
}

// Break removes the entry that r shows.
func (p readWrite) Break(r protocol.Record, b protocol.Break) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(r.Key))
	p.mode = r.Mode
	if p.mode == protocol.ModeRead {
		p.removeReader(w, r.Grant)
	} else {
		p.endWriter(w, r.Grant, protocol.Release{Version: b.Version, Expires: b.Expires})
	}
	setBroken(w, r, b)
	w.Where(p.stands(w, r.Grant, protocol.Hold{Owner: r.Owner, Token: r.Token}) +
		" AND " + w.PathIn(w.Path(append(p.place(r.Grant), p.version)...), []string{r.Version}))
	return w
}

// held returns the condition of every write on an entry. Several grants have not
// been renewed yet, so the version of each is its id.
func (p readWrite) held(w *protocol.Write, h protocol.Hold) string {
	conditions := make([]string, len(h.Grants))
	for i, grant := range h.Grants {
		versions := h.Versions
		if len(h.Grants) > 1 {
			versions = []string{grant}
		}
		conditions[i] = p.stands(w, grant, h) + " AND " + w.PathIn(w.Path(append(p.place(grant), p.version)...), versions)
	}
	return "(" + strings.Join(conditions, ") OR (") + ")"
}

// stands returns the condition that the grant has not ended, renewed or not.
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

// Intend writes the intent of a writer. It returns nil unless only readers block
// the writer, apart from intents that are its own or dead.
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
	grant := append(slices.Clone(g.Intents), g.Version)[0] // the id stays when the intent is renewed
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

// Withdraw removes the intent if it is one of these grants.
func (p readWrite) Withdraw(h protocol.Hold) *protocol.Write {
	w := protocol.NewUpdate(p.mustKey(h.Key))
	w.Remove(attrIntent)
	w.Where(w.PathIn(w.Path(attrIntent, attrGrant), h.Grants))
	return w
}

// row is a decoded row of a read/write lock.
type row struct {
	token   int64
	writer  *protocol.Record // nil: no writer holds it
	left    *protocol.Record // nil unless the last writer lets readers go first
	until   time.Time        // of left: until when, by the clock of that writer
	version string           // of the last writer's release
	last    string           // the last writer's grant id
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
			ms := left.clamped(attrReadersFor, longestLease.Milliseconds())
			r.left = &protocol.Record{Key: key, Mode: protocol.ModeReadersFirst, Grant: r.last, Version: r.version, Lease: decide.Times(time.Millisecond, ms)}
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
	for _, grant := range slices.Sorted(maps.Keys(readers)) { // a grant's id begins with its time
		entry, ok := readers[grant].(*types.AttributeValueMemberM)
		if !ok {
			d.fail(attrReaders, "has an entry that is not a map")
			continue
		}
		tokens.required(grant)
		known := protocol.Record{Key: key, Mode: protocol.ModeRead, Grant: grant, Token: tokens.tokenOf(grant)}
		r.readers = append(r.readers, *p.decodeEntry(&d, attrReaders, entry.Value, known))
	}
	d.within(attrTokens, tokens)
	return r, key, d.err
}

// decodeEntry reads an entry into r, which has what is known from its place.
func (p readWrite) decodeEntry(d *decoder, place string, entry protocol.Item, r protocol.Record) *protocol.Record {
	e := decoder{item: entry}
	r.Owner, r.Version = e.text(p.owner), e.text(p.version)
	r.Lease = e.heldLease(p.lease, p.decodeLease(&e, p.lease), true)
	r.GrantedAt = e.time(attrGrantedAt, time.UnixMilli)
	r.LeaseEnds = p.leaseEndsOf(entry, r.Version)
	if r.Grant == "" {
		r.Grant = e.text(attrGrant)
	}
	d.within(place, e)
	return &r
}

// entries reads a map. nil: there is none.
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

// within copies the error of a decoder that has read the map called name.
func (d *decoder) within(name string, inner decoder) {
	if problem, ok := inner.err.(*protocol.DecodeError); ok { // a decoder has no other errors
		d.fail(name+"."+problem.Attribute, problem.Problem)
	}
}

// Blockers returns who keeps a grant from being made. For a reader: the writer and
// the intent or, if the row is full, all readers, one of which must leave. For a
// writer: everybody.
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

// Entries returns the holders of the row, the longest holding first. For a free
// row it returns one released record.
func (p native) Entries(item protocol.Item) ([]protocol.Record, error) {
	return readWrite{versioned: p.record}.entriesOf(item)
}

func (p readWrite) entriesOf(item protocol.Item) ([]protocol.Record, error) {
	r, key, err := p.decodeRow(item)
	broken := brokenOf(item)
	switch {
	case err != nil:
		return nil, err
	case r.writer != nil:
		r.writer.Broken = broken
		return []protocol.Record{*r.writer}, nil
	case len(r.readers) == 0:
		return []protocol.Record{{Key: key, Released: true, Token: r.token, Version: r.version, Grant: r.last, Mode: protocol.ModeWrite, Broken: broken}}, nil
	}
	for i := range r.readers {
		r.readers[i].Broken = broken
	}
	return r.readers, nil
}

// Decode reads the entry of the grant. If it is gone, it returns the holder that
// has replaced it, or a released record.
func (p readWrite) Decode(item protocol.Item) (protocol.Record, error) {
	all, err := p.entriesOf(item)
	if err != nil {
		return protocol.Record{Key: p.KeyOf(item)}, err
	}
	if i := slices.IndexFunc(all, func(r protocol.Record) bool { return r.Grant == p.grant && !r.Released }); i >= 0 {
		return all[i], nil
	}
	if p.mode == protocol.ModeRead && (all[0].Released || all[0].Mode == protocol.ModeRead) { // another reader has not replaced this one
		return protocol.Record{Key: all[0].Key, Released: true, Mode: protocol.ModeRead, Broken: all[0].Broken}, nil
	}
	return all[0], nil
}
