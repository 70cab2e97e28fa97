package localdynamo

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
)

// The appendJSON functions append JSON to a reply. All texts in a reply are UTF-8, because the
// engine refuses requests that are not UTF-8.

const hexDigits = "0123456789abcdef"

func appendJSONString(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[from:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		from = i + 1
	}
	return append(append(b, s[from:]...), '"')
}

func appendJSONItem(b []byte, it item) []byte {
	b = append(b, '{')
	for i, a := range it {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendJSONString(b, a.name), ':')
		b = appendJSONValue(b, a.value)
	}
	return append(b, '}')
}

func appendJSONValue(b []byte, v value) []byte {
	b = append(b, '{', '"')
	b = append(b, v.kind.String()...)
	b = append(b, '"', ':')
	switch v.kind {
	case kindBool:
		b = strconv.AppendBool(b, v.yes)
	case kindNull:
		b = append(b, "true"...)
	case kindM:
		b = appendJSONItem(b, v.item)
	case kindL:
		b = appendJSONList(b, v.list, appendJSONValue)
	case kindSS, kindNS, kindBS:
		b = appendJSONList(b, v.list, appendJSONScalar)
	default:
		b = appendJSONScalar(b, v)
	}
	return append(b, '}')
}

func appendJSONScalar(b []byte, v value) []byte {
	if v.kind == kindB {
		b = append(b, '"')
		b = base64.StdEncoding.AppendEncode(b, []byte(v.text))
		return append(b, '"')
	}
	return appendJSONString(b, v.text)
}

func appendJSONList[T any](b []byte, list []T, one func([]byte, T) []byte) []byte {
	b = append(b, '[')
	for i, element := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = one(b, element)
	}
	return append(b, ']')
}

// reply builds a JSON object member by member: the body of a reply, or an object inside it.
type reply struct {
	body []byte
}

func newReply() *reply { return &reply{body: append(make([]byte, 0, 512), '{')} }

// member begins a member with the given name. The caller must then append the member's value to
// body.
func (r *reply) member(name string) *reply {
	if len(r.body) > 1 {
		r.body = append(r.body, ',')
	}
	r.body = append(appendJSONString(r.body, name), ':')
	return r
}

func (r *reply) text(name, s string) { r.body = appendJSONString(r.member(name).body, s) }

func (r *reply) int(name string, n int) {
	r.body = strconv.AppendInt(r.member(name).body, int64(n), 10)
}

func (r *reply) item(name string, it item) { r.body = appendJSONItem(r.member(name).body, it) }

// attributes writes the item as a member with the given name. It writes nothing if the item is
// empty.
func (r *reply) attributes(name string, it item) {
	if len(it) > 0 {
		r.item(name, it)
	}
}

func (r *reply) items(name string, items []item) {
	r.body = appendJSONList(r.member(name).body, items, appendJSONItem)
}

func (r *reply) end() []byte { return append(r.body, '}') }

// errorReply returns the body of an error reply. The member with the error's text is called
// Message for two error types of the API, and message for all others.
func errorReply(e *apiError) []byte {
	r := newReply()
	r.text("__type", e.kind)
	if e.item != nil {
		r.item("Item", e.item)
	}
	message := "message"
	if e.kind == typeCanceled || e.kind == typeMismatch {
		message = "Message"
	}
	r.text(message, e.message)
	if e.reasons != nil {
		r.body = appendJSONList(r.member("CancellationReasons").body, e.reasons, appendJSONReason)
	}
	return r.end()
}

func appendJSONReason(b []byte, why reason) []byte {
	r := newReply()
	r.text("Code", why.code)
	if why.item != nil {
		r.item("Item", why.item)
	}
	if why.message != "" {
		r.text("Message", why.message)
	}
	return append(b, r.end()...)
}

// encode returns the JSON of a reply that consists of maps, slices and plain values.
func encode(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // this cannot happen, because json can encode all such values
	}
	return body
}
