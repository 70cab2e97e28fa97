package leasehold

import (
	"github.com/leasehold-go/leasehold/internal/protocol"
)

// decode reads an item as a record of key.
func (c *Client) decode(key Key, item protocol.Item) (Record, error) {
	r, err := c.observer.Decode(protocol.Key(key), item)
	if err != nil {
		return Record{}, err
	}
	return recordOf(r), nil
}
