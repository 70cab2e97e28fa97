package localdynamo

import (
	"iter"
	"slices"
	"time"

	"github.com/leasehold-go/leasehold/localdynamo/expr"
)

// maxPage is the size at which a page of a Query or Scan ends: 1 MB of items.
const maxPage = 1 << 20

// page is one page of a Query or Scan. It contains the request's parameters and the result.
type page struct {
	filter     *condition
	projection []expr.Path
	limit      int // maximum number of items to read; zero means as many as fit on a page
	count      bool
	backward   bool

	items   []item
	matched int
	scanned int
	size    int
	// Key after which the next page starts; nil if p.read has reached the end of its range.
	last item
}

// newPage checks the request parameters that Query and Scan share. It returns a page that contains
// these parameters, and no items yet.
func (e *Engine) newPage(req *request, s *scope) (*page, error) {
	if req.index != "" {
		return nil, invalidf("The table does not have the specified index: %s", req.index)
	}
	if req.limit.given && req.limit.value < 1 {
		return nil, invalidf("1 validation error detected: Value '%d' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1", req.limit.value)
	}
	if err := checkSelect(req.selects, req.projection.given); err != nil {
		return nil, err
	}
	p := &page{limit: req.limit.value, count: req.selects == "COUNT"}
	var err error
	if p.filter, err = e.condition("FilterExpression", req.filter, s); err != nil {
		return nil, err
	}
	p.projection, err = e.projection(req.projection, s)
	return p, err
}

func checkSelect(selects string, projection bool) error {
	switch selects {
	case "":
	case "ALL_ATTRIBUTES":
		if projection {
			return invalid("Cannot specify the ProjectionExpression when choosing to get ALL_ATTRIBUTES")
		}
	case "COUNT":
		if projection {
			return invalid("Cannot specify the ProjectionExpression when choosing to get only the Count")
		}
	case "SPECIFIC_ATTRIBUTES":
		if !projection {
			return invalid("Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES")
		}
	case "ALL_PROJECTED_ATTRIBUTES":
		return invalid("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName")
	default:
		return notOneOf("select", selects, "[SPECIFIC_ATTRIBUTES, COUNT, ALL_ATTRIBUTES, ALL_PROJECTED_ATTRIBUTES]")
	}
	return nil
}

// read adds to the page the items of table t whose Store key is in the range from <= key < to.
// It stops when the page is full.
func (p *page) read(tx Tx, t *table, from, to []byte, now time.Time) error {
	pairs := tx.Range(from, to)
	if p.backward {
		pairs = reversed(pairs)
	}
	for _, stored := range pairs {
		it, err := readItem(stored)
		if err != nil {
			return err
		}
		if t.swept(it, now) {
			continue
		}
		p.add(it)
		if p.scanned == p.limit || p.size >= maxPage {
			p.last = t.keyOf(it)
			return nil
		}
	}
	return nil
}

// reversed yields pairs in reverse order. A Store can only iterate forward, so reversed loads
// all pairs into memory. Partitions in tests are small enough for that.
func reversed(pairs iter.Seq2[[]byte, []byte]) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		var all [][2][]byte
		for key, stored := range pairs {
			all = append(all, [2][]byte{key, stored})
		}
		for _, pair := range slices.Backward(all) {
			if !yield(pair[0], pair[1]) {
				return
			}
		}
	}
}

func (p *page) add(it item) {
	p.scanned++
	p.size += it.size()
	if !p.filter.holds(it) {
		return
	}
	p.matched++
	if p.count {
		return
	}
	if p.projection != nil {
		it = project(it, p.projection)
	}
	p.items = append(p.items, it)
}

// reply returns the body of a reply that contains the page.
func (p *page) reply(req *request) []byte {
	r := newReply()
	if !p.count {
		r.items("Items", p.items)
	}
	r.int("Count", p.matched)
	r.int("ScannedCount", p.scanned)
	r.attributes("LastEvaluatedKey", p.last)
	r.consumed(req.capacity, capacity{table: req.table, read: readUnits(p.size, req.consistent)})
	return r.end()
}
