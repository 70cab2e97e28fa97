//go:build linux

package interop

import (
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/leasehold-go/leasehold/internal/conformance"
	"pgregory.net/rapid"
)

// The requests use few keys, attributes and values, so that many requests concern the same items.
var (
	pks        = []string{"a", "b"}
	sks        = []string{"1", "2", "10"}
	attributes = []string{"p", "q", "n", "l", "m", "ss", "ns"}
)

var request = rapid.OneOf(
	as(put), as(update), as(update), as(update), as(deletion), as(get),
	as(query), as(scan), as(transaction), as(batchWrite), as(batchGet), as(transactGet),
)

func as[R conformance.Request](g *rapid.Generator[R]) *rapid.Generator[conformance.Request] {
	return rapid.Map(g, func(r R) conformance.Request { return r })
}

var key = rapid.Custom(func(t *rapid.T) conformance.Item {
	return conformance.Item{
		"pk": &types.AttributeValueMemberS{Value: rapid.SampledFrom(pks).Draw(t, "pk")},
		"sk": &types.AttributeValueMemberS{Value: rapid.SampledFrom(sks).Draw(t, "sk")},
	}
})

// item generates an item. Its attributes mostly have the types that the updates expect, and
// sometimes other types.
var item = rapid.Custom(func(t *rapid.T) conformance.Item {
	item := key.Draw(t, "key")
	usual := []*rapid.Generator[types.AttributeValue]{value, value, number, list, dict, stringSet, numberSet}
	for i, name := range attributes {
		switch rapid.IntRange(0, 5).Draw(t, "kind of "+name) {
		case 0, 1, 2:
			item[name] = usual[i].Draw(t, name)
		case 3:
			item[name] = valueOf(name).Draw(t, name)
		}
	}
	return item
})

var value = rapid.OneOf(scalar, scalar, list, dict, stringSet, numberSet)

// valueOf generates a value for the named attribute. It never generates null for l and m, because
// some updates write l[0] or m.x. If l or m is null, DynamoDB refuses such an update, but dynoxide
// executes it as for an empty list or map.
func valueOf(name string) *rapid.Generator[types.AttributeValue] {
	if name == "l" || name == "m" {
		return rapid.OneOf(ordered, list, dict, stringSet, numberSet)
	}
	return value
}

var scalar = rapid.OneOf(
	ordered,
	rapid.Custom(func(t *rapid.T) types.AttributeValue {
		return &types.AttributeValueMemberBOOL{Value: rapid.Bool().Draw(t, "bool")}
	}),
	rapid.Just[types.AttributeValue](&types.AttributeValueMemberNULL{Value: true}),
)

// ordered generates values of the types that DynamoDB can order.
var ordered = rapid.OneOf(
	number,
	rapid.Custom(func(t *rapid.T) types.AttributeValue {
		return &types.AttributeValueMemberS{Value: rapid.SampledFrom([]string{"", "a", "ab", "b", "ä"}).Draw(t, "string")}
	}),
	rapid.Custom(func(t *rapid.T) types.AttributeValue {
		return &types.AttributeValueMemberB{Value: []byte(rapid.SampledFrom([]string{"", "a", "ab", "\x00\xff"}).Draw(t, "bytes"))}
	}),
)

var number = rapid.Custom(func(t *rapid.T) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: rapid.SampledFrom([]string{
		"0", "-0", "1", "1.0", "-1", "2", "10", "0.1", "1e2", "-1E-7", "9007199254740993", "12345678901234567890123456789012345678",
	}).Draw(t, "number")}
})

// list generates a list with one to three elements.
var list = rapid.Map(rapid.SliceOfN(scalar, 1, 3), func(v []types.AttributeValue) types.AttributeValue {
	return &types.AttributeValueMemberL{Value: v}
})

var dict = rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"x", "y"}), scalar, 0, 2), func(m conformance.Item) types.AttributeValue {
	return &types.AttributeValueMemberM{Value: m}
})

var stringSet = rapid.Map(rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 3, rapid.ID), func(v []string) types.AttributeValue {
	return &types.AttributeValueMemberSS{Value: v}
})

// numberSet generates a set of numbers. Each number is always written in the same way (1, never
// 1.0), because dynoxide compares the numbers in sets as text.
var numberSet = rapid.Map(rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"1", "2.5", "-3"}), 1, 3, rapid.ID), func(v []string) types.AttributeValue {
	return &types.AttributeValueMemberNS{Value: v}
})

// values maps the placeholders of an expression to their values.
type values struct{ all conformance.Item }

func (v *values) add(value types.AttributeValue) string {
	if v.all == nil {
		v.all = conformance.Item{}
	}
	name := ":v" + strings.Repeat("v", len(v.all))
	v.all[name] = value
	return name
}

var paths = append(slices.Clone(attributes), "m.x", "l[0]", "l[1]", "nothing")

func condition(t *rapid.T, v *values) string {
	return conditionOf(t, v, 2)
}

func conditionOf(t *rapid.T, v *values, depth int) string {
	path := rapid.SampledFrom(paths).Draw(t, "path")
	kinds := 8
	if depth > 0 {
		kinds = 11
	}
	switch rapid.IntRange(0, kinds).Draw(t, "condition") {
	case 0:
		return "attribute_exists(" + path + ")"
	case 1:
		return "attribute_not_exists(" + path + ")"
	case 2:
		operator := rapid.SampledFrom([]string{"=", "<>"}).Draw(t, "operator")
		return path + " " + operator + " " + v.add(value.Draw(t, "operand"))
	case 3:
		// The operands are never booleans or nulls: DynamoDB refuses an ordered comparison with a
		// boolean or null, but dynoxide evaluates such a comparison to false.
		operator := rapid.SampledFrom([]string{"<", "<=", ">", ">="}).Draw(t, "operator")
		return path + " " + operator + " " + v.add(ordered.Draw(t, "operand"))
	case 4:
		return path + " IN (" + v.add(value.Draw(t, "operand")) + ", " + v.add(scalar.Draw(t, "operand")) + ")"
	case 5:
		return "contains(" + path + ", " + v.add(scalar.Draw(t, "operand")) + ")"
	case 6:
		return "size(" + path + ") > " + v.add(number.Draw(t, "operand"))
	case 7:
		kind := rapid.SampledFrom([]string{"S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS"}).Draw(t, "type")
		return "attribute_type(" + path + ", " + v.add(&types.AttributeValueMemberS{Value: kind}) + ")"
	case 8:
		prefix := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "prefix")
		return "begins_with(" + path + ", " + v.add(&types.AttributeValueMemberS{Value: prefix}) + ")"
	case 9:
		return "NOT " + conditionOf(t, v, depth-1)
	default:
		joint := rapid.SampledFrom([]string{" AND ", " OR "}).Draw(t, "joint")
		return conditionOf(t, v, depth-1) + joint + "(" + conditionOf(t, v, 0) + ")"
	}
}

// maybe generates a condition with a probability of one half. Otherwise it returns "".
func maybe(t *rapid.T, v *values) string {
	if rapid.Bool().Draw(t, "conditional") {
		return condition(t, v)
	}
	return ""
}

var put = rapid.Custom(func(t *rapid.T) conformance.Put {
	var v values
	r := conformance.Put{Item: item.Draw(t, "item"), If: maybe(t, &v)}
	r.Return = rapid.SampledFrom([]types.ReturnValue{"", types.ReturnValueAllOld}).Draw(t, "return")
	r.OldIfFail = rapid.Bool().Draw(t, "old")
	r.Values = v.all
	return r
})

var deletion = rapid.Custom(func(t *rapid.T) conformance.Delete {
	var v values
	r := conformance.Delete{Key: key.Draw(t, "key"), If: maybe(t, &v)}
	r.Return = rapid.SampledFrom([]types.ReturnValue{"", types.ReturnValueAllOld}).Draw(t, "return")
	r.OldIfFail = rapid.Bool().Draw(t, "old")
	r.Values = v.all
	return r
})

var update = rapid.Custom(func(t *rapid.T) conformance.Update {
	var v values
	r := conformance.Update{Key: key.Draw(t, "key"), Do: actions(t, &v), If: maybe(t, &v)}
	// The requests never use ALL_OLD. If the item did not exist, DynamoDB returns no item for
	// ALL_OLD, but dynoxide returns an item with only the key.
	returns := []types.ReturnValue{"", types.ReturnValueAllNew}
	// If the update writes l[0], the request never uses UPDATED_OLD or UPDATED_NEW: dynoxide
	// would return the whole list instead of the element.
	if !strings.Contains(r.Do, "l[0]") {
		returns = append(returns, types.ReturnValueUpdatedOld, types.ReturnValueUpdatedNew)
	}
	r.Return = rapid.SampledFrom(returns).Draw(t, "return")
	r.OldIfFail = rapid.Bool().Draw(t, "old")
	r.Values = v.all
	return r
})

// actions generates an update expression that writes each attribute at most once. In lists and
// maps, it writes only l[0] and m.x, and removes nothing. For other changes in lists and maps,
// dynoxide differs from AWS: it fills gaps in lists, removes elements singly, and accepts removals
// in missing maps.
func actions(t *rapid.T, v *values) string {
	var set, remove, add, del []string
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(attributes), 1, 3, rapid.ID).Draw(t, "attributes") {
		kind := rapid.IntRange(0, 3).Draw(t, "action")
		switch {
		case kind == 0:
			remove = append(remove, name)
		case kind == 1:
			set = append(set, name+" = "+v.add(valueOf(name).Draw(t, "value")))
		case name == "n" && kind == 2:
			add = append(add, "n "+v.add(number.Draw(t, "value")))
		case name == "n":
			set = append(set, "n = if_not_exists(n, "+v.add(number.Draw(t, "value"))+") - "+v.add(number.Draw(t, "value")))
		case name == "l" && kind == 2:
			set = append(set, "l = list_append(if_not_exists(l, "+v.add(list.Draw(t, "value"))+"), "+v.add(list.Draw(t, "value"))+")")
		case name == "l":
			set = append(set, "l[0] = "+v.add(scalar.Draw(t, "value")))
		case name == "m":
			set = append(set, "m.x = "+v.add(scalar.Draw(t, "value")))
		case name == "ss" && kind == 2:
			add = append(add, "ss "+v.add(stringSet.Draw(t, "value")))
		case name == "ss":
			del = append(del, "ss "+v.add(stringSet.Draw(t, "value")))
		case name == "ns" && kind == 2:
			add = append(add, "ns "+v.add(numberSet.Draw(t, "value")))
		case name == "ns":
			del = append(del, "ns "+v.add(numberSet.Draw(t, "value")))
		default:
			set = append(set, name+" = "+rapid.SampledFrom([]string{"n", "l", "m", "nothing"}).Draw(t, "from"))
		}
	}
	var all []string
	for i, parts := range [][]string{set, remove, add, del} {
		if len(parts) > 0 {
			clause := []string{"SET ", "REMOVE ", "ADD ", "DELETE "}[i]
			all = append(all, clause+strings.Join(parts, ", "))
		}
	}
	return strings.Join(all, " ")
}

var get = rapid.Custom(func(t *rapid.T) conformance.Get {
	return conformance.Get{Key: key.Draw(t, "key"), Project: projection(t)}
})

// projection generates paths that do not overlap, or no path at all.
func projection(t *rapid.T) string {
	return strings.Join(rapid.SliceOfNDistinct(
		rapid.SampledFrom([]string{"sk", "p", "n", "l[0]", "l[2]", "m.x", "m.y", "ss", "nothing"}), 0, 4, rapid.ID,
	).Draw(t, "projection"), ", ")
}

var query = rapid.Custom(func(t *rapid.T) conformance.Query {
	var v values
	r := conformance.Query{Where: "pk = " + v.add(&types.AttributeValueMemberS{Value: rapid.SampledFrom(pks).Draw(t, "pk")})}
	bound := func() string {
		return v.add(&types.AttributeValueMemberS{Value: rapid.SampledFrom(sks).Draw(t, "sk")})
	}
	switch rapid.IntRange(0, 3).Draw(t, "range") {
	case 1:
		r.Where += " AND sk " + rapid.SampledFrom([]string{"=", "<", "<=", ">", ">="}).Draw(t, "operator") + " " + bound()
	case 2:
		r.Where += " AND begins_with(sk, " + bound() + ")"
	}
	r.Filter = maybe(t, &v)
	r.Project = projection(t)
	r.Backward = rapid.Bool().Draw(t, "backward")
	r.Limit = rapid.Int32Range(0, 3).Draw(t, "limit")
	r.Values = v.all
	return r
})

// scan generates a scan without a limit. With a limit, the engines would return different items,
// because each engine returns the hash keys in its own order.
var scan = rapid.Custom(func(t *rapid.T) conformance.Scan {
	var v values
	return conformance.Scan{Filter: maybe(t, &v), Project: projection(t), Values: v.all}
})

// transaction generates a transaction of writes to different keys.
var transaction = rapid.Custom(func(t *rapid.T) conformance.TransactWrite {
	var writes []conformance.Request
	for _, k := range rapid.SliceOfNDistinct(key, 1, 3, keyText).Draw(t, "keys") {
		switch rapid.IntRange(0, 3).Draw(t, "write") {
		case 0:
			w := put.Draw(t, "put")
			maps.Copy(w.Item, k)
			writes = append(writes, w)
		case 1:
			w := update.Draw(t, "update")
			w.Key = k
			writes = append(writes, w)
		case 2:
			w := deletion.Draw(t, "delete")
			w.Key = k
			writes = append(writes, w)
		default:
			var v values
			w := conformance.Check{Key: k, If: condition(t, &v), OldIfFail: rapid.Bool().Draw(t, "old")}
			w.Values = v.all
			writes = append(writes, w)
		}
	}
	return conformance.TransactWrite{Writes: writes}
})

// transactGet generates a transaction of reads without projections. With a projection,
// dynoxide would also return the key.
var transactGet = rapid.Map(rapid.SliceOfNDistinct(key, 1, 3, keyText), func(keys []conformance.Item) conformance.TransactGet {
	var all conformance.TransactGet
	for _, k := range keys {
		all = append(all, conformance.Get{Key: k})
	}
	return all
})

var batchWrite = rapid.Custom(func(t *rapid.T) conformance.BatchWrite {
	var r conformance.BatchWrite
	for _, k := range rapid.SliceOfNDistinct(key, 1, 3, keyText).Draw(t, "keys") {
		if rapid.Bool().Draw(t, "put") {
			i := item.Draw(t, "item")
			maps.Copy(i, k)
			r.Put = append(r.Put, i)
		} else {
			r.Delete = append(r.Delete, k)
		}
	}
	return r
})

var batchGet = rapid.Custom(func(t *rapid.T) conformance.BatchGet {
	return conformance.BatchGet{
		Keys:    rapid.SliceOfNDistinct(key, 1, 3, keyText).Draw(t, "keys"),
		Project: projection(t),
	}
})

func keyText(k conformance.Item) string {
	return k["pk"].(*types.AttributeValueMemberS).Value + "/" + k["sk"].(*types.AttributeValueMemberS).Value
}
