package localdynamo

import (
	"bytes"
	"context"
	"encoding/binary"
	"time"
)

// maxSegments is the maximum number of segments of a parallel Scan.
const maxSegments = 1000000

// scan implements Scan.
func (e *Engine) scan(ctx context.Context, req *request) ([]byte, error) {
	if err := req.check(); err != nil {
		return nil, err
	}
	if err := checkSegments(req.segment, req.segments); err != nil {
		return nil, err
	}
	s := newScope(req)
	if err := s.checkGiven(req.filter.given || req.projection.given, "FilterExpression is null"); err != nil {
		return nil, err
	}
	p, err := e.newPage(req, s)
	if err != nil {
		return nil, err
	}
	if err := s.checkUsed(); err != nil {
		return nil, err
	}
	err = e.view(ctx, func(tx Tx) error {
		t, err := e.table(tx, req.table)
		if err != nil {
			return err
		}
		from, to, err := t.scanSpan(req)
		if err != nil {
			return err
		}
		return p.read(tx, t, from, to, time.Now())
	})
	if err != nil {
		return nil, err
	}
	return p.reply(req), nil
}

func checkSegments(segment, segments option[int]) error {
	switch {
	case !segment.given && !segments.given:
		return nil
	case !segment.given:
		return invalid("The Segment parameter is required but was not present in the request when parameter TotalSegments is present")
	case !segments.given:
		return invalid("The TotalSegments parameter is required but was not present in the request when Segment parameter is present")
	case segments.value < 1:
		return invalidf("1 validation error detected: Value '%d' at 'totalSegments' failed to satisfy constraint: Member must have value greater than or equal to 1", segments.value)
	case segments.value > maxSegments:
		return invalidf("1 validation error detected: Value '%d' at 'totalSegments' failed to satisfy constraint: Member must have value less than or equal to %d", segments.value, maxSegments)
	case segment.value < 0:
		return invalidf("1 validation error detected: Value '%d' at 'segment' failed to satisfy constraint: Member must have value greater than or equal to 0", segment.value)
	case segment.value >= segments.value:
		return invalidf("The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: %d is not less than TotalSegments: %d", segment.value, segments.value)
	}
	return nil
}

// scanSpan returns the range of Store keys that one page of a Scan may read. The range is
// within the table or, for a parallel Scan, within one segment of it.
func (t *table) scanSpan(req *request) (from, to []byte, err error) {
	whole := appendTablePrefix(nil, prefixItem, t.Name)
	from, to = whole, after(whole)
	if n := uint64(req.segments.value); n > 1 {
		bound := func(segment int) []byte {
			return binary.BigEndian.AppendUint32(bytes.Clone(whole), uint32(uint64(segment)<<32/n))
		}
		from = bound(req.segment.value)
		if uint64(req.segment.value) < n-1 {
			to = bound(req.segment.value + 1)
		}
	}
	if !req.start.given {
		return from, to, nil
	}
	start, err := t.startAfter(req.start.value)
	if err != nil {
		return nil, nil, err
	}
	if !within(start, from, to) {
		return nil, nil, invalidf("The provided starting key is invalid: Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct Segment. TotalSegments: %d Segment: %d", req.segments.value, req.segment.value)
	}
	return append(start, 0), to, nil
}

// The function "within" reports whether from <= key < to.
func within(key, from, to []byte) bool {
	return bytes.Compare(key, from) >= 0 && bytes.Compare(key, to) < 0
}
