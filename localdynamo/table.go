package localdynamo

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/leasehold-go/leasehold/internal/filefault"
)

// table is the description of a table. The Store contains the description as JSON.
type table struct {
	Name       string
	ID         string
	Created    time.Time
	Hash       keyAttribute
	Range      *keyAttribute     `json:",omitempty"`
	Billing    string            // "PROVISIONED" or "PAY_PER_REQUEST"
	ReadUnits  int64             `json:",omitempty"`
	WriteUnits int64             `json:",omitempty"`
	Class      string            `json:",omitempty"`
	Protected  bool              `json:",omitempty"` // value of DeletionProtectionEnabled
	Tags       map[string]string `json:",omitempty"`
	TTL        string            `json:",omitempty"` // name of the TTL attribute; empty if TTL is off
}

// keyAttribute is an attribute of a table's primary key.
type keyAttribute struct {
	Name string
	Type string // type of the key attribute: "S", "N" or "B"
}

var errDamagedTable = filefault.Lasting(errors.New("the description of a table cannot be read: the file is damaged or was written by a newer version"))

func parseTable(stored string) (*table, error) {
	t := &table{}
	if json.Unmarshal([]byte(stored), t) != nil {
		return nil, errDamagedTable
	}
	return t, nil
}

func (t *table) save(tx Tx) error {
	stored, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return tx.Put(tableKey(t.Name), stored)
}

// table returns the description of the table with the given name, or an error if the table does
// not exist.
func (e *Engine) table(tx Tx, name string) (*table, error) {
	stored := tx.Get(tableKey(name))
	if stored == nil {
		return nil, notFound()
	}
	return e.tables.get(string(stored))
}

func tableKey(name string) []byte {
	return append([]byte{prefixTable}, name...)
}

func (t *table) isKey(name string) bool {
	return name == t.Hash.Name || t.Range != nil && name == t.Range.Name
}

// key returns the Store key of the item with the given primary key. It returns an error unless
// the primary key consists of exactly the table's key attributes, with the right types.
func (t *table) key(key item) ([]byte, error) {
	attributes := 1
	if t.Range != nil {
		attributes = 2
	}
	if len(key) != attributes ||
		key.get(t.Hash.Name).kind.String() != t.Hash.Type ||
		t.Range != nil && key.get(t.Range.Name).kind.String() != t.Range.Type {
		return nil, invalid("The provided key element does not match the schema")
	}
	return t.place(key)
}

// keyIn returns the Store key of a whole item, such as the item of a PutItem. It returns an
// error if the item lacks a key attribute, or if a key attribute has the wrong type.
func (t *table) keyIn(it item) ([]byte, error) {
	for _, attribute := range t.keyAttributes() {
		v := it.get(attribute.Name)
		switch {
		case v.kind == kindNone:
			return nil, invalidf("One or more parameter values were invalid: Missing the key %s in the item", attribute.Name)
		case v.kind.String() != attribute.Type:
			return nil, invalidf("One or more parameter values were invalid: Type mismatch for key %s expected: %s actual: %s", attribute.Name, attribute.Type, v.kind)
		}
	}
	return t.place(it)
}

func (t *table) keyAttributes() []keyAttribute {
	if t.Range == nil {
		return []keyAttribute{t.Hash}
	}
	return []keyAttribute{t.Hash, *t.Range}
}

const (
	maxHashSize  = 2048
	maxRangeSize = 1024
)

// place returns the Store key of an item whose key attributes have the right types. It returns
// an error if the value of a key attribute is empty or too long.
func (t *table) place(it item) ([]byte, error) {
	hash := it.get(t.Hash.Name)
	if err := checkKeyValue(t.Hash, hash); err != nil {
		return nil, err
	}
	if hash.size() > maxHashSize {
		// DynamoDB's own message also lacks the space after "of".
		return nil, invalidf("One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of%d bytes", maxHashSize)
	}
	key := make([]byte, 0, len(t.Name)+len(hash.text)+64)
	key = appendPartition(appendTablePrefix(key, prefixItem, t.Name), hash)
	if t.Range == nil {
		return key, nil
	}
	sort := it.get(t.Range.Name)
	if err := checkKeyValue(*t.Range, sort); err != nil {
		return nil, err
	}
	if sort.size() > maxRangeSize {
		return nil, invalidf("One or more parameter values were invalid: Aggregated size of all range keys has exceeded the size limit of %d bytes", maxRangeSize)
	}
	return appendSortable(key, sort), nil
}

func checkKeyValue(attribute keyAttribute, v value) error {
	if v.text != "" {
		return nil
	}
	word := "string"
	if v.kind == kindB {
		word = "binary"
	}
	return invalidf("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty %s value. Key: %s", word, attribute.Name)
}

// keyOf returns the key attributes of an item.
func (t *table) keyOf(it item) item {
	key := item{}.with(t.Hash.Name, it.get(t.Hash.Name))
	if t.Range != nil {
		key = key.with(t.Range.Name, it.get(t.Range.Name))
	}
	return key
}
