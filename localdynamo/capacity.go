package localdynamo

import "strconv"

// capacity contains the capacity units that a call consumed on one table. See
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
type capacity struct {
	table string
	read  float64
	write float64
}

// readUnits returns the read units that a read of the given number of bytes consumes. A
// strongly consistent read consumes one unit for each 4 KB, rounded up, and at least one. An
// eventually consistent read consumes half as many.
func readUnits(size int, consistent bool) float64 {
	units := float64(max(1, (size+4095)/4096))
	if !consistent {
		units /= 2
	}
	return units
}

// writeUnits returns the write units that a write consumes. It compares the sizes of the item
// before and after the write. Each 1 KB of the larger size, rounded up, costs one unit. A write
// consumes at least one unit.
func writeUnits(before, after item) float64 {
	return float64(max(1, (max(before.size(), after.size())+1023)/1024))
}

// consumed adds the member ConsumedCapacity to a reply, unless "level" is NONE or empty. The
// parameter "level" is the member ReturnConsumedCapacity of the request.
func (r *reply) consumed(level string, c capacity) {
	if level == "TOTAL" || level == "INDEXES" {
		r.body = appendJSONCapacity(r.member("ConsumedCapacity").body, level, c, false)
	}
}

// consumedList writes the member ConsumedCapacity of a call that uses several tables. For a
// transaction it lists read units and write units separately.
func (r *reply) consumedList(level string, all []capacity, transaction bool) {
	if level == "TOTAL" || level == "INDEXES" {
		r.body = appendJSONList(r.member("ConsumedCapacity").body, all, func(b []byte, c capacity) []byte {
			return appendJSONCapacity(b, level, c, transaction)
		})
	}
}

func appendJSONCapacity(b []byte, level string, c capacity, transaction bool) []byte {
	units := func(r *reply) {
		r.float("CapacityUnits", c.read+c.write)
		if transaction && c.read > 0 {
			r.float("ReadCapacityUnits", c.read)
		}
		if transaction && c.write > 0 {
			r.float("WriteCapacityUnits", c.write)
		}
	}
	r := newReply()
	r.text("TableName", c.table)
	units(r)
	if level == "INDEXES" {
		inner := newReply()
		units(inner)
		r.body = append(r.member("Table").body, inner.end()...)
	}
	return append(b, r.end()...)
}

func (r *reply) float(name string, n float64) {
	r.body = strconv.AppendFloat(r.member(name).body, n, 'f', 1, 64)
}

// tally contains the sum of capacity for each table, in the order in which the tables first
// appear.
type tally []capacity

func (t *tally) add(table string, read, write float64) {
	for i := range *t {
		if (*t)[i].table == table {
			(*t)[i].read += read
			(*t)[i].write += write
			return
		}
	}
	*t = append(*t, capacity{table, read, write})
}
