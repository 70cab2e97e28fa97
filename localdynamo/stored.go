package localdynamo

import (
	"encoding/binary"
	"errors"

	"github.com/leasehold-go/leasehold/internal/filefault"
)

// An item is stored as the number of its attributes, then the name and the value of each attribute.
// A value is stored as its kind, then its content. Each text begins with its length. Each list, set
// or map begins with the number of its elements. Lengths and numbers are uvarints.

func appendItem(b []byte, it item) []byte {
	b = binary.AppendUvarint(b, uint64(len(it)))
	for _, a := range it {
		b = appendValue(appendText(b, a.name), a.value)
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendValue(b []byte, v value) []byte {
	b = append(b, byte(v.kind))
	switch v.kind {
	case kindS, kindN, kindB:
		return appendText(b, v.text)
	case kindBool:
		if v.yes {
			return append(b, 1)
		}
		return append(b, 0)
	case kindM:
		return appendItem(b, v.item)
	case kindL:
		b = binary.AppendUvarint(b, uint64(len(v.list)))
		for _, element := range v.list {
			b = appendValue(b, element)
		}
	case kindSS, kindNS, kindBS:
		b = binary.AppendUvarint(b, uint64(len(v.list)))
		for _, element := range v.list {
			b = appendText(b, element.text)
		}
	}
	return b
}

var errDamaged = filefault.Lasting(errors.New("a stored item cannot be read: the file is damaged or was written by a newer version"))

// stored decodes an item from its stored form. All texts of the item are substrings of one
// string.
type stored struct {
	rest  string
	depth int // current nesting depth of lists and maps
	bad   bool
}

// readItem decodes the stored form of an item. It copies b, so the item stays valid when b
// changes.
func readItem(b []byte) (item, error) {
	s := stored{rest: string(b)}
	it := s.item()
	if s.bad || s.rest != "" {
		return nil, errDamaged
	}
	return it, nil
}

func (s *stored) uvarint() int {
	var n uint64
	for i := 0; i < len(s.rest) && i < 5; i++ {
		c := s.rest[i]
		n |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			s.rest = s.rest[i+1:]
			// Each element takes at least one byte. So if the number of elements exceeds the
			// number of remaining bytes, the stored form is damaged.
			if n > uint64(len(s.rest)) {
				s.bad = true
				return 0
			}
			return int(n)
		}
	}
	s.bad = true
	return 0
}

func (s *stored) text() string {
	n := s.uvarint()
	text := s.rest[:n]
	s.rest = s.rest[n:]
	return text
}

func (s *stored) byte() byte {
	if s.rest == "" {
		s.bad = true
		return 0
	}
	c := s.rest[0]
	s.rest = s.rest[1:]
	return c
}

func (s *stored) item() item {
	n := s.uvarint()
	it := make(item, 0, n)
	for range n {
		it = append(it, attribute{s.text(), s.value()})
	}
	return it
}

func (s *stored) value() value {
	v := value{kind: kind(s.byte())}
	if s.depth++; s.depth > maxNesting+1 { // no stored item is nested more deeply
		s.bad, s.rest = true, ""
	}
	switch v.kind {
	case kindS, kindN, kindB:
		v.text = s.text()
	case kindBool:
		v.yes = s.byte() == 1
	case kindNull:
	case kindM:
		v.item = s.item()
	case kindL:
		n := s.uvarint()
		v.list = make([]value, 0, n)
		for range n {
			v.list = append(v.list, s.value())
		}
	case kindSS, kindNS, kindBS:
		n := s.uvarint()
		v.list = make([]value, 0, n)
		for range n {
			v.list = append(v.list, value{kind: v.kind.element(), text: s.text()})
		}
	default:
		s.bad = true
	}
	s.depth--
	return v
}
