package localdynamo

import (
	"encoding/binary"
	"hash/fnv"
)

// The keys in a Store have these forms. The first byte of a key shows its form:
//
//	t TABLE                                  a table's description (table.go)
//	i TABLE 0 SPREAD HASH RANGE              an item (stored.go)
//	x TABLE 0 EXPIRY SPREAD HASH RANGE       an item that TTL may delete (ttl.go)
//	r TOKEN                                  an idempotency token (token.go)
//	q EXPIRY TOKEN                           the expiry of an idempotency token (token.go)
//
// The 0 is a zero byte. HASH and RANGE are the key attributes, encoded so that their bytes sort as
// DynamoDB sorts the values. SPREAD is the FNV-1a checksum of HASH, in four bytes. Because of
// SPREAD, the order of a Scan is arbitrary, as in DynamoDB. Each segment of a parallel Scan is a
// range of keys.
const (
	prefixTable  = 't'
	prefixItem   = 'i'
	prefixExpiry = 'x'
	prefixToken  = 'r'
	prefixForget = 'q'
)

const spreadSize = 4

// appendTablePrefix appends the beginning of a Store key that belongs to a table: the prefix
// byte and the table's name (TABLE in the list above).
func appendTablePrefix(b []byte, prefix byte, table string) []byte {
	b = append(b, prefix)
	b = append(b, table...)
	return append(b, 0)
}

// appendPartition appends the parts SPREAD and HASH of a Store key. Both depend only on hash,
// the value of the hash key.
func appendPartition(b []byte, hash value) []byte {
	at := len(b)
	b = append(b, 0, 0, 0, 0)
	b = appendSortable(b, hash)
	spread := fnv.New32a()
	_, _ = spread.Write(b[at+spreadSize:])
	binary.BigEndian.PutUint32(b[at:], spread.Sum32())
	return b
}

// appendSortable appends an encoding of a key attribute's value. Encodings sort as DynamoDB
// sorts the values. No encoding is a prefix of another encoding.
func appendSortable(b []byte, v value) []byte {
	if v.kind == kindN {
		return appendSortableNumber(b, v.text)
	}
	for i := range len(v.text) {
		b = append(b, v.text[i])
		if v.text[i] == 0 {
			b = append(b, 0xff)
		}
	}
	return append(b, endOfText...)
}

// endOfText ends the encoding of a text. Inside a text, each byte 0 is encoded as the two bytes 0
// and 0xff, which sort after endOfText. So a text sorts before every longer text that begins with
// it.
const endOfText = "\x00\x00"

// appendSortableNumber appends one byte for the sign, then the exponent, then the digits. For a
// negative number it inverts the exponent and the digits, so that -2 sorts before -1.
func appendSortableNumber(b []byte, number string) []byte {
	negative, digits, exponent := numberParts(number)
	if digits == "" {
		return append(b, 2)
	}
	sign, flip := byte(3), byte(0)
	if negative {
		sign, flip = 1, 0xff
	}
	b = append(b, sign, byte((exponent+1<<15)>>8)^flip, byte(exponent)^flip)
	for i := range len(digits) {
		b = append(b, digits[i]^flip)
	}
	return append(b, flip)
}

// The function "after" returns the smallest key that is greater than every key with the prefix b.
// It returns nil if no key is greater.
func after(b []byte) []byte {
	end := append([]byte(nil), b...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] < 0xff {
			end[i]++
			return end[:i+1]
		}
	}
	return nil
}
