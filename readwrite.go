package leasehold

import (
	"time"

	"github.com/leasehold-go/leasehold/internal/decide"
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// checkAlone refuses, for a read/write lock, what needs a record of its own.
func (r *request) checkAlone(c *Client, p policy, ch *changes) error {
	switch {
	case r.Mode == protocol.ModePlain:
		return nil
	case !ch.none():
		return c.unsupported("data or attributes of a read/write lock")
	case p == deleteRecord:
		return c.unsupported("DeleteOnRelease of a read/write lock")
	}
	return nil
}

// mayShare reports whether a request can share the grant of h.
func (r *request) mayShare(h *holding) bool {
	return h.want.Mode == r.Mode || h.want.Mode == protocol.ModeWrite && r.Mode == protocol.ModeRead
}

// readersFirst is how long other writers let readers go first after this one: the
// longest pause of a reader who watched this writer or its intent, and the time that
// a read and a grant take.
func (h *holding) readersFirst() time.Duration {
	since := h.granted.Mono
	if h.want.Intended != nil {
		since = h.want.Intended.Mono
	}
	return decide.Sum(decide.Pause(h.c.now().Mono-since, h.c.cfg.PollMin, h.c.cfg.PollMax, 1), decide.Times(h.c.cfg.PollMin, 2))
}

// decodeAll reads the records in an item: a read/write lock has one for each holder.
func (c *Client) decodeAll(key Key, item protocol.Item) ([]Record, error) {
	rw, ok := c.proto.(protocol.ReadWriting)
	if !ok || !protocol.IsReadWrite(item) {
		r, err := c.decode(key, item)
		return []Record{r}, err
	}
	entries, err := rw.Entries(item)
	if err != nil {
		return []Record{{Key: key}}, c.recordError(key, item, err)
	}
	records := make([]Record, len(entries))
	for i, e := range entries {
		records[i] = recordOf(e)
	}
	return records, nil
}

// protoOfRecord returns the protocol by which a record is written and read.
func (c *Client) protoOfRecord(r Record) protocol.Protocol {
	if rw, ok := c.proto.(protocol.ReadWriting); ok && r.mode != protocol.ModePlain {
		return rw.ReadWrite(r.mode, false).Of(r.Grant)
	}
	if c.isSession(r.Key) {
		return c.proto.(protocol.Sharing).Session() // as isSession has found
	}
	return c.proto
}
