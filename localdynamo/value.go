package localdynamo

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// kind is the type of an attribute value. Stored items contain kinds as numbers (stored.go), so
// the order of the constants must not change.
type kind byte

const (
	kindNone kind = iota // no value
	kindS
	kindN
	kindB
	kindBool
	kindNull
	kindSS
	kindNS
	kindBS
	kindL
	kindM
)

// kindNames contains the names of the kinds in requests and replies.
var kindNames = [...]string{"", "S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"}

// longNames contains the names that some error texts use for the kinds of values.
var longNames = [...]string{
	"", "STRING", "NUMBER", "BINARY", "BOOLEAN", "NULL",
	"STRING_SET", "NUMBER_SET", "BINARY_SET", "LIST", "MAP",
}

func (k kind) String() string { return kindNames[k] }

func (k kind) isSet() bool { return k == kindSS || k == kindNS || k == kindBS }

// element returns the kind of the elements in a set of kind k.
func (k kind) element() kind { return k - kindSS + kindS }

// value is an attribute value. The code never modifies the content of a value, because the item
// before a write and the item after it share values.
type value struct {
	kind kind
	yes  bool // value if the kind is BOOL
	// Text of an S, canonical form of an N, or bytes of a B.
	text string
	// Elements of an L, in the order of the list. Or elements of a set, sorted and without
	// duplicates.
	list []value
	item item // content if the kind is M
}

// attribute is an attribute's name and value.
type attribute struct {
	name  string
	value value
}

// item is an item of a table, or the content of a value of type M. Its attributes are sorted by
// name.
type item []attribute

func (it item) find(name string) (int, bool) {
	return slices.BinarySearchFunc(it, name, func(a attribute, name string) int {
		return strings.Compare(a.name, name)
	})
}

// get returns the value of the named attribute, or a value of kindNone if the item lacks the
// attribute.
func (it item) get(name string) value {
	if i, ok := it.find(name); ok {
		return it[i].value
	}
	return value{}
}

// The method "with" returns a copy of the item in which the named attribute has the value v. If v
// is of kindNone, the copy lacks the attribute.
func (it item) with(name string, v value) item {
	i, found := it.find(name)
	switch {
	case found && v.kind == kindNone:
		return slices.Concat(it[:i], it[i+1:])
	case found:
		it = slices.Clone(it)
		it[i].value = v
		return it
	case v.kind == kindNone:
		return it
	default:
		return slices.Concat(it[:i], item{{name, v}}, it[i:])
	}
}

func integer(n int) value { return value{kind: kindN, text: strconv.Itoa(n)} }

// equal reports whether DynamoDB's operators treat two values as equal: the values have the
// same kind and the same content. Numbers are compared by value, and sets in any order.
func (v value) equal(other value) bool {
	return v.kind == other.kind && v.yes == other.yes && v.text == other.text &&
		slices.EqualFunc(v.list, other.list, value.equal) &&
		slices.EqualFunc(v.item, other.item, func(a, b attribute) bool {
			return a.name == b.name && a.value.equal(b.value)
		})
}

// compare compares two values of the same scalar kind: S and B by their bytes, N numerically.
func (v value) compare(other value) int {
	if v.kind == kindN {
		return compareNumbers(v.text, other.text)
	}
	return cmp.Compare(v.text, other.text)
}

// contains reports whether the list or set v contains the element.
func (v value) contains(element value) bool { return slices.ContainsFunc(v.list, element.equal) }

// newSet returns a set of the given kind that contains the elements. It also reports whether
// two of the elements are equal.
func newSet(set kind, elements []value) (v value, duplicates bool) {
	slices.SortFunc(elements, value.compare)
	unique := slices.CompactFunc(elements, value.equal)
	return value{kind: set, list: unique}, len(unique) < len(elements)
}

// size returns the size of the value in bytes, as DynamoDB counts it. See
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
func (v value) size() int {
	switch v.kind {
	case kindS, kindB:
		return len(v.text)
	case kindN:
		return numberSize(v.text)
	case kindBool, kindNull:
		return 1
	case kindL:
		size := 3
		for _, element := range v.list {
			size += 1 + element.size()
		}
		return size
	case kindM:
		return 3 + len(v.item) + v.item.size()
	default:
		size := 0
		for _, element := range v.list {
			size += element.size()
		}
		return size
	}
}

// size returns the size of the item in bytes, as DynamoDB counts it: the sizes of all names and
// values.
func (it item) size() int {
	size := 0
	for _, a := range it {
		size += len(a.name) + a.value.size()
	}
	return size
}

// depth returns the number of levels of lists and maps in the value.
func (v value) depth() int {
	deepest := 0
	for _, element := range v.list {
		deepest = max(deepest, element.depth())
	}
	for _, a := range v.item {
		deepest = max(deepest, a.value.depth())
	}
	if v.kind == kindL || v.kind == kindM {
		deepest++
	}
	return deepest
}
