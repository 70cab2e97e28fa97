package leasehold_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/lab"
)

// checker watches a run from outside: what each process sends and receives,
// what the table applies, in which order, and what is believed when. The
// numbers of what it reports are those of the list in docs/guarantees.md.
type checker struct {
	mu       sync.Mutex
	clocked  bool // records go by the wall clock
	began    time.Time
	problems []string
	history  history // what was sent, applied and believed, for whoever replays a seed
	deletes  bool    // some process deletes records on release: a repeated request may bring one back

	longest time.Duration   // lease of any client
	holdsOn bool            // belief goes on in an outage: nobody promises that it ends with the lease
	told    map[string]bool // versions that a process has heard of from another
	broken  map[string]bool // grants that were freed by hand: nobody promises anything of a belief in them

	table    *lab.World                   // that the requests are applied to
	records  map[string]*state            // by key, as the table has it
	rows     map[string]*rowState         // of read/write locks
	versions map[string]bool              // ever installed
	pairs    map[[2]string]bool           // of grant id and token, ever installed
	terms    map[[2]string]int            // by owner and token, ever installed: the process
	trusts   map[string]time.Time         // by grant: the latest instant that any installed attempt supports
	seen     map[int]map[string]time.Time // by process and version: the first reply that showed it
	arrived  map[string]time.Time         // by record: the last write of a process of the run
	sessions map[string]*sessionState     // by id
	beliefs  []*belief
	over     map[[2]string]bool     // grants and tokens whose Release returned nil
	commits  map[string]*commitCall // by value
	logs     map[string][]string    // by key, as the table has them
	permits  permitLog
}

// state is a record as the table has it.
type state struct {
	version, grant, owner string
	token                 int64
	lease                 time.Duration
	released              bool
	session               string // as far as the owner's name confirms it
	by                    int    // who wrote it
}

// sessionState is a shared lease as the table has it.
type sessionState struct {
	by      *simClient // whose it is
	version string
	trust   time.Time // the latest instant that any installed renewal supports
	dead    bool
}

// request is one request of one process.
type request struct {
	lab.Call
	by *simClient
	at time.Time
}

// belief is the time in which a process believes in a grant.
type belief struct {
	by         *simClient
	lock       *leasehold.Lock
	grant      string
	session    string
	shared     bool // a reader's
	began, end time.Time
}

func newChecker() *checker {
	return &checker{
		began: time.Now(), history: history{began: time.Now()}, records: map[string]*state{}, rows: map[string]*rowState{}, versions: map[string]bool{},
		pairs: map[[2]string]bool{}, terms: map[[2]string]int{},
		trusts: map[string]time.Time{}, seen: map[int]map[string]time.Time{}, over: map[[2]string]bool{},
		sessions: map[string]*sessionState{}, arrived: map[string]time.Time{}, broken: map[string]bool{}, told: map[string]bool{},
		commits: map[string]*commitCall{}, logs: map[string][]string{},
	}
}

func (c *checker) violated(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.note(format, args...)
}

func (c *checker) note(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf("invariant "+format, args...))
}

func (c *checker) first() string {
	if len(c.problems) == 0 {
		return ""
	}
	return c.problems[0]
}

// believes enters a lock that a process was given.
func (c *checker) believes(by *simClient, lock *leasehold.Lock) {
	if lock.Err() != nil {
		return // ended before it was told of
	}
	b := &belief{by: by, lock: lock, grant: lock.Record().Grant, began: time.Now()}
	c.mu.Lock()
	if s := c.records[lock.Key().Partition]; s != nil && s.grant == b.grant {
		b.session = s.session
	}
	c.beliefs = append(c.beliefs, b)
	c.history.enter("process %d believes in grant %s of %v", by.id, b.grant, lock.Key())
	c.mu.Unlock()
	context.AfterFunc(lock.Context(), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		b.end = time.Now()
		c.history.enter("process %d believes no more in grant %s of %v", by.id, b.grant, lock.Key())
	})
}

// sent looks at a request as it leaves.
func (c *checker) sent(r *request) {
	if c.clocked {
		return // a renewal does not look like one of native's there
	}
	c.mu.Lock()
	about := c.believed(r)
	over := map[*belief]bool{} // not only at this very instant: requests cross
	for _, b := range about {
		over[b] = !b.end.IsZero() && b.end.Before(r.at)
	}
	c.mu.Unlock()
	for _, b := range about {
		err := b.lock.Err()
		trusted := err == nil
		switch {
		case r.Renews() && errors.Is(err, leasehold.ErrDetached): // to be resumed
		case r.Renews() && over[b]:
			c.violated("9: process %d renews grant %s after its trust has ended: %v", r.by.id, b.grant, err)
		case (r.Releases() || r.HandsOver()) && trusted:
			c.violated("6: process %d gives up grant %s while it is trusted", r.by.id, b.grant)
		}
	}
}

// newestBy is who believed in a grant last. c.mu is held.
func (c *checker) newestBy(grant string) *simClient {
	var by *simClient
	for _, b := range c.beliefs {
		if b.grant == grant {
			by = b.by
		}
	}
	return by
}

// believed returns what the process believes of the grants that the request's
// condition names. A detached grant was resumed under the same id: its newest
// belief counts.
func (c *checker) believed(r *request) []*belief {
	if r.Reads() {
		return nil
	}
	newest := map[string]*belief{}
	for _, b := range c.beliefs {
		if b.by == r.by && bytes.Contains(r.Body, []byte(b.grant)) {
			newest[b.grant] = b
		}
	}
	var out []*belief
	for _, b := range newest {
		out = append(out, b)
	}
	return out
}

// applied has the table answer a request and looks at what that changed. One
// request is applied at a time.
func (c *checker) applied(r *request, apply func() (*http.Response, error)) (*http.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	res, err := apply()
	if err != nil || res.StatusCode != http.StatusOK || r.Reads() {
		return res, err
	}
	if c.clocked {
		c.changesByTheClock(r, res)
		return res, nil
	}
	if r.Commits() {
		c.committed(r)
		return res, nil
	}
	for _, part := range r.Parts() {
		var in struct{ Key map[string]struct{ S string } }
		if err := json.Unmarshal(part.Body, &in); err != nil {
			c.note("0: unreadable request: %v", err)
			return res, nil
		}
		key := in.Key["key"].S
		var item attributeMap
		switch {
		case r.Op == "TransactWriteItems": // which does not say what it wrote
			item = attributesOf(c.table.Item(key))
			if before := c.records[key]; before != nil && item != nil && before.version == item.text("recordVersionNumber") {
				continue // a copy of a transaction, of which its token makes nothing
			}
		case part.Op == "UpdateItem":
			item = attributes(res)
		}
		if item == nil {
			c.applies(r, key, "deleted")
			delete(c.records, key)
			continue
		}
		c.changes(r, key, item)
	}
	return res, nil
}

// changes enters the new state of a record.
func (c *checker) changes(r *request, key string, item attributeMap) {
	if item.text("kind") == "rw" {
		c.changesRow(r, key, item)
		return
	}
	now := &state{
		version: item.text("recordVersionNumber"), grant: item.text("grantId"), owner: item.text("ownerName"),
		token: item.number("fencingToken"), released: item.text("isReleased") == "1", by: r.by.id,
	}
	ms, _ := strconv.ParseInt(item.text("leaseDuration"), 10, 64)
	now.lease = time.Duration(ms) * time.Millisecond
	if id, ok := strings.CutPrefix(key, "leasehold/session/"); ok {
		c.checkSession(r, id, now, item)
		return
	}
	if item.text("kind") == "semaphore" {
		c.resized(r, now, item)
		return
	}
	if id := item.text("session"); id != "" && strings.HasSuffix(now.owner, "/"+id) {
		now.session = id
	}
	if !now.released {
		c.terms[[2]string{now.owner, strconv.FormatInt(now.token, 10)}] = r.by.id
	}
	before := c.records[key]
	c.records[key] = now
	c.applies(r, key, fmt.Sprintf("%+v", *now))
	c.check(r, key, before, now, item)
}

func (c *checker) applies(r *request, key, what string) {
	if r.by.id != lastClient {
		c.arrived[key] = time.Now()
	}
	c.history.enter("process %d, sent at %v: %s %s", r.by.id, r.at.Sub(c.began), key, what)
}

// check holds one change of a record against the invariants.
func (c *checker) check(r *request, key string, before, now *state, item attributeMap) {
	pair := [2]string{now.grant, strconv.FormatInt(now.token, 10)}
	if c.versions[now.version] && !now.released && !c.deletes {
		// A late duplicate of a grant that meets a released record installs its
		// version again, with a higher token: an unsettled attempt, which no client treats as held.
		if now.version != now.grant || c.pairs[pair] {
			c.note("2: version %s of %s came back", now.version, key)
		}
		for _, b := range c.beliefs {
			if b.grant == now.grant && b.lock.Err() == nil && !c.broken[b.grant] {
				c.note("2: grant %s of %s was granted again while it was believed in", now.grant, key)
			}
		}
	}
	c.versions[now.version] = true
	if now.version == "" || now.owner == "" || now.lease <= 0 {
		c.note("10: %s lacks an attribute of the Java client: %v", key, item)
	}
	if _, ok := item["expiresAt"]; ok && !now.released {
		c.note("10: %s is held and may be collected by TTL", key)
	}
	if now.session != "" && !now.released && now.lease != time.Hour {
		c.note("10: %s is under a shared lease, and tells those who know none that its lease is %v", key, now.lease)
	}
	if !now.released {
		lease := time.Duration(float64(now.lease-time.Duration(float64(now.lease)*float64(simMargin)/float64(simLease))) / r.by.rate)
		if until := r.at.Add(lease); until.After(c.trusts[now.grant]) {
			c.trusts[now.grant] = until
		}
		if c.over[pair] && !c.isDead(now.session) {
			c.note("8: grant %s of %s lives on after its release was confirmed", now.grant, key)
		}
	}
	if before != nil && before.grant == now.grant {
		if now.released && r.by.id == operator {
			c.broken[now.grant] = true
		}
		return // a renewal or a release
	}

	// A grant.
	c.permits.installed(now.grant)
	if c.pairs[pair] && !c.deletes {
		c.note("3: grant %s with token %d of %s was installed twice", now.grant, now.token, key)
	}
	c.pairs[pair] = true
	if before == nil || before.released {
		if before != nil && now.token <= before.token {
			c.note("3: token of %s went from %d to %d", key, before.token, now.token)
		}
		return
	}
	if now.token <= before.token {
		c.note("3: token of %s went from %d to %d", key, before.token, now.token)
	}
	for _, b := range c.beliefs {
		if b.grant == before.grant && b.by == r.by && b.lock.Err() == nil {
			c.note("7: process %d replaced its own grant of %s while it believed in it", r.by.id, key)
		}
	}
	if before.owner == now.owner || before.by == r.by.id || c.newestBy(before.grant) == r.by {
		return // handed over, or its own and believed in no more
	}
	if s := c.sessions[before.session]; s != nil {
		if !s.dead && s.by != r.by {
			c.note("11: process %d took %s over under session %s, which is not marked dead", r.by.id, key, before.session)
		}
		return // its session is dead, or was its own and is over
	}
	first, ok := c.seen[r.by.id][before.version]
	// The observer's clock may run fast, within the margin.
	rate := r.by.rate
	if c.told[before.version] {
		rate = max(rate, 1) // it was aged by the wall clock
	}
	if watched := time.Duration(float64(r.at.Sub(first)) * rate); !ok || watched < before.lease-time.Microsecond {
		c.note("7: process %d took %s over having watched version %s for %v of %v", r.by.id, key, before.version, watched, before.lease)
	}
}

// isDead reports whether the session of that id is marked dead: what is held
// under it is free. c.mu is held.
func (c *checker) isDead(session string) bool {
	s := c.sessions[session]
	return s != nil && s.dead
}

// checkSession holds one change of a session's row against the invariants.
func (c *checker) checkSession(r *request, id string, now *state, item attributeMap) {
	s := c.sessions[id]
	if s == nil {
		s = &sessionState{by: r.by}
		c.sessions[id] = s
	}
	before := s.version
	s.version = now.version
	c.applies(r, "session "+id, fmt.Sprintf("%+v dead %q", *now, item.text("dead")))
	if item.text("kind") != "session" || now.version == "" || now.owner == "" || now.lease <= 0 {
		c.note("10: session %s lacks an attribute: %v", id, item)
	}
	if item.text("dead") == "" {
		if s.dead {
			c.note("11: session %s was renewed after its dead mark", id)
		}
		if until := r.at.Add(time.Duration(float64(now.lease-now.lease/10) / r.by.rate)); until.After(s.trust) {
			s.trust = until
		}
		return
	}
	s.dead = true
	for _, b := range c.beliefs {
		if b.session == id && b.lock.Err() == nil {
			c.note("11: process %d believes in grant %s under session %s, which is marked dead", b.by.id, b.grant, id)
		}
	}
	if s.by == r.by {
		return
	}
	first, ok := c.seen[r.by.id][before]
	if watched := time.Duration(float64(r.at.Sub(first)) * r.by.rate); !ok || watched < now.lease-time.Microsecond {
		c.note("11: process %d marked session %s dead having watched it for %v of %v", r.by.id, id, watched, now.lease)
	}
}

// received enters what a reply shows the process.
func (c *checker) received(r *request, res *http.Response) {
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	c.mu.Lock()
	defer c.mu.Unlock()
	var out struct {
		Item, Attributes    attributeMap
		Responses           map[string][]attributeMap
		CancellationReasons []struct{ Item attributeMap }
	}
	if json.Unmarshal(body, &out) != nil {
		return
	}
	shown := append(out.Responses["locks"], out.Item, out.Attributes)
	for _, reason := range out.CancellationReasons {
		shown = append(shown, reason.Item)
	}
	if c.seen[r.by.id] == nil {
		c.seen[r.by.id] = map[string]time.Time{}
	}
	for _, item := range shown {
		for _, version := range item.rowVersions() {
			if _, ok := c.seen[r.by.id][version]; !ok {
				c.seen[r.by.id][version] = time.Now()
			}
		}
		version := item.text("recordVersionNumber")
		if _, ok := c.seen[r.by.id][version]; !ok && version != "" {
			c.seen[r.by.id][version] = time.Now()
		}
	}
}

// releasedForGood enters a Release that returned nil.
func (c *checker) releasedForGood(lock *leasehold.Lock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	grant := lock.Record().Grant
	if !c.deletes && c.stands(lock.Key().Partition, grant, lock.Token()) {
		c.note("8: Release of grant %s returned nil, and the record shows it held", grant)
	}
	c.over[[2]string{grant, strconv.FormatInt(lock.Token(), 10)}] = !c.deletes
}

// finish holds the beliefs against each other, once all have ended.
func (c *checker) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settleCommits()
	for i, b := range c.beliefs {
		if b.end.IsZero() {
			c.note("1: process %d believes in grant %s for ever", b.by.id, b.grant)
			continue
		}
		supported := c.trusts[b.grant]
		if s := c.sessions[b.session]; s != nil && s.trust.Before(supported) {
			supported = s.trust
		}
		if b.end.After(supported.Add(b.by.lease/20)) && !c.holdsOn {
			// A twentieth: the end is when a timer fired, of a clock that may run fast.
			c.note("5: process %d believed in grant %s until %v, an attempt supports %v", b.by.id, b.grant, b.end, supported)
		}
		for _, o := range c.beliefs[:i] {
			if c.broken[o.grant] || c.broken[b.grant] || c.holdsOn {
				continue
			}
			if o.lock.Key() == b.lock.Key() && (!o.shared || !b.shared) && o.began.Before(b.end) && b.began.Before(o.end) {
				c.note("1: processes %d and %d both believed to hold %v", o.by.id, b.by.id, b.lock.Key())
			}
		}
	}
}

// attributeMap is an item in DynamoDB JSON.
type attributeMap map[string]map[string]any

func (m attributeMap) text(name string) string {
	s, _ := m[name]["S"].(string)
	return s
}

func (m attributeMap) number(name string) int64 {
	s, _ := m[name]["N"].(string)
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

// attributesOf spells what the checker looks at of an item; nil: there is none.
func attributesOf(item map[string]types.AttributeValue) attributeMap {
	if item == nil {
		return nil
	}
	m := attributeMap{}
	for name, v := range item {
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			m[name] = map[string]any{"S": v.Value}
		case *types.AttributeValueMemberN:
			m[name] = map[string]any{"N": v.Value}
		case *types.AttributeValueMemberM:
			inner := map[string]any{}
			for name, v := range attributesOf(v.Value) {
				inner[name] = v
			}
			m[name] = map[string]any{"M": inner}
		}
	}
	return m
}

// attributes reads the item that an update returned, and leaves the reply as
// it was.
func attributes(res *http.Response) attributeMap {
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	var out struct{ Attributes attributeMap }
	_ = json.Unmarshal(body, &out)
	return out.Attributes
}
