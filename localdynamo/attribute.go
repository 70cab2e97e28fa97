package localdynamo

import (
	"encoding/base64"
	"slices"
	"strings"
)

// maxNesting is the maximum number of levels of lists and maps in an attribute's value.
const maxNesting = 32

const maxName = 1<<16 - 1 // maximum number of bytes in an attribute's name

const textNesting = "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit"

// item decodes an item, a key, or the content of a map.
func (r *reader) item(depth int) item {
	it := item{}
	sorted := true
	r.object(func(name string) {
		if len(it) > 0 && name <= it[len(it)-1].name {
			sorted = false
		}
		if name == "" {
			r.refuse(invalid("Empty attribute name"))
		}
		if len(name) > maxName {
			r.refuse(invalidf("1 validation error detected: a name of %d bytes in a map failed to satisfy constraint: Map keys must satisfy constraint: [Member must have length less than or equal to %d, Member must have length greater than or equal to 0]", len(name), maxName))
		}
		if v := r.value(depth); v.kind != kindNone { // r returns kindNone for a value that it refuses
			it = append(it, attribute{name, v})
		}
	})
	if sorted {
		return it
	}
	slices.SortStableFunc(it, func(a, b attribute) int { return strings.Compare(a.name, b.name) })
	// If several members have the same name, the last one is used, as in most JSON readers.
	last := it[:0]
	for i, a := range it {
		if i+1 == len(it) || it[i+1].name != a.name {
			last = append(last, a)
		}
	}
	return last
}

// value decodes an attribute value. In JSON, that is an object with one member, whose name is
// the value's type.
func (r *reader) value(depth int) (v value) {
	if depth > maxNesting {
		panic(invalid(textNesting))
	}
	count := 0
	r.object(func(name string) {
		if one := r.typed(name, depth); one.kind != kindNone {
			v = one
			count++
		}
	})
	switch count {
	case 0:
		r.refuse(invalid("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"))
	case 1:
	default:
		r.refuse(invalid("Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes"))
	}
	return v
}

func (r *reader) typed(name string, depth int) value {
	switch name {
	case "S":
		return value{kind: kindS, text: r.string()}
	case "N", "B":
		return r.scalar(name)
	case "BOOL":
		return value{kind: kindBool, yes: r.bool()}
	case "NULL":
		if !r.bool() {
			r.refuse(invalid("One or more parameter values were invalid: Null attribute value types must have the value of true"))
		}
		return value{kind: kindNull}
	case "SS", "NS", "BS":
		return r.set(name)
	case "L":
		v := value{kind: kindL}
		r.array(func() {
			if element := r.value(depth + 1); element.kind != kindNone { // r returns kindNone for an element that it refuses
				v.list = append(v.list, element)
			}
		})
		return v
	case "M":
		return value{kind: kindM, item: r.item(depth + 1)}
	}
	r.skip(0)
	return value{}
}

// scalar decodes a JSON string as an attribute value. name is the value's type: S, N or B.
func (r *reader) scalar(name string) value {
	s := r.string()
	switch name {
	case "N":
		number, err := parseNumber(s)
		if err != nil {
			r.refuse(err)
			number = "0" // replaces the refused number, so that the elements of a set can still be compared
		}
		return value{kind: kindN, text: number}
	case "B":
		decoded, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			r.fail("\"%s\" is not base64", s)
		}
		return value{kind: kindB, text: string(decoded)}
	}
	return value{kind: kindS, text: s}
}

func (r *reader) set(name string) value {
	var elements []value
	var given []string
	r.array(func() {
		element := r.scalar(name[:1])
		elements = append(elements, element)
		given = append(given, element.text)
	})
	set := map[string]kind{"SS": kindSS, "NS": kindNS, "BS": kindBS}[name]
	if len(elements) == 0 {
		r.refuse(invalid("One or more parameter values were invalid: " + map[kind]string{
			kindSS: "An string set  may not be empty",
			kindNS: "An number set  may not be empty",
			kindBS: "Binary sets should not be empty",
		}[set]))
	}
	v, duplicates := newSet(set, elements)
	if duplicates {
		switch set {
		case kindSS:
			r.refuse(invalidf("One or more parameter values were invalid: Input collection [%s] contains duplicates.", strings.Join(given, ", ")))
		case kindNS:
			r.refuse(invalid("Input collection contains duplicates"))
		case kindBS:
			r.refuse(invalid("One or more parameter values were invalid: Input collection of type BS contains duplicates."))
		}
	}
	return v
}
