package say

import (
	"encoding/json"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/holders"
)

// Record is a record as get and ls print it: the table, the holder's liveness
// if it was observed, what it is a permit of, and the Record's own JSON.
type Record struct {
	Table  string
	Record leasehold.Record
	Holder holders.State
	Permit *Permit // nil: it is not known to be one
}

// MarshalJSON is the record's own JSON, after what the command knows of it.
func (r Record) MarshalJSON() ([]byte, error) {
	return Joined(struct {
		Table  string        `json:"table"`
		Holder holders.State `json:"holder,omitempty"`
		*Permit
	}{r.Table, r.Holder, r.Permit}, r.Record)
}

// Joined is the JSON of two values as one object. Both have fields.
func Joined(first, second any) ([]byte, error) {
	head, err := json.Marshal(first)
	if err != nil {
		return nil, err
	}
	tail, err := json.Marshal(second)
	if err != nil {
		return nil, err
	}
	return append(append(head[:len(head)-1], ','), tail[1:]...), nil
}

// Records are records of which nothing more is known.
func Records(records []leasehold.Record) []Record {
	rows := make([]Record, len(records))
	for i, r := range records {
		rows[i].Record = r
	}
	return rows
}

// Permit says what a record is a permit of.
type Permit struct {
	Semaphore string `json:"semaphore"`
	Number    int    `json:"permit"`
}
