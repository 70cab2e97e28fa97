package localdynamo

import "strconv"

// capacity is what a call consumed of one table, in capacity units as
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
// counts them.
type capacity struct {
	table string
	read  float64
	write float64
}

// readUnits counts a read of size bytes: one unit for every 4 KB begun, half of
// that if the read is eventually consistent. Reading nothing is not free.
func readUnits(size int, consistent bool) float64 {
	units := float64(max(1, (size+4095)/4096))
	if !consistent {
		units /= 2
	}
	return units
}

// writeUnits counts a write: one unit for every 1 KB begun of the larger of the
// item before and the item after.
func writeUnits(before, after item) float64 {
	return float64(max(1, (max(before.size(), after.size())+1023)/1024))
}

// consumed writes ConsumedCapacity as the request asked for it: not at all, in
// TOTAL or by INDEXES.
func (r *reply) consumed(level string, c capacity) {
	if level == "TOTAL" || level == "INDEXES" {
		r.body = appendJSONCapacity(r.member("ConsumedCapacity").body, level, c, false)
	}
}

// consumedList writes ConsumedCapacity of a call on several tables. That of a
// transaction says what was read and what was written.
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

// tally adds up capacity by table, in the order in which tables come up.
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
