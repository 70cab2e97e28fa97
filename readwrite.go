package leasehold

import "github.com/leasehold-go/leasehold/internal/protocol"

// checkAlone refuses, for a read/write lock, what needs a record of its own.
func (cfg *Config) checkAlone(mode protocol.Mode, deletes bool, ch protocol.Changes) error {
	switch {
	case mode == protocol.ModePlain:
		return nil
	case !ch.None():
		return cfg.unsupported("data or attributes of a read/write lock")
	case deletes:
		return cfg.unsupported("DeleteOnRelease of a read/write lock")
	}
	return nil
}

// decodeAll reads the records in an item: a read/write lock has one for each holder.
func (c *Client) decodeAll(key Key, item protocol.Item) ([]Record, error) {
	rw, ok := c.proto.(protocol.ReadWriting)
	if !ok || !protocol.IsReadWrite(item) {
		r, err := c.observer.Decode(protocol.Key(key), item)
		return []Record{recordOf(r)}, err
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
