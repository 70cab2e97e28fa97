package localdynamo

import (
	"strconv"
	"time"
)

// sweepAfter is how long after its time TTL deletes an item. DynamoDB takes up
// to a few days, and until then returns the item; an hour is long enough that
// code which counts on TTL being prompt fails here too.
const sweepAfter = time.Hour

// staleAfter is how long after its time TTL leaves an item alone: DynamoDB takes
// a time that long ago for a mistake.
const staleAfter = 5 * 365 * 24 * time.Hour

// swept says whether TTL has deleted the item by now.
func (t *table) swept(it item, now time.Time) bool {
	if t.TTL == "" {
		return false
	}
	v := it.get(t.TTL)
	if v.kind != kindN {
		return false
	}
	seconds, err := strconv.ParseFloat(v.text, 64)
	if err != nil {
		return false
	}
	age := float64(now.Unix()) - seconds
	return age >= sweepAfter.Seconds() && age < staleAfter.Seconds()
}
