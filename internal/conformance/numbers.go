package conformance

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// numberCases returns the cases for the notation of numbers, and for the order in which numbers are
// sorted.
func numberCases() []Case {
	var cases []Case
	digits := strings.Repeat("123456789", 4) + "12" // a number with 38 digits, which is the maximum
	for _, c := range []struct{ put, get string }{
		{"0", "0"},
		{"-0", "0"},
		{"0.000", "0"},
		{"007", "7"},
		{"+7", "7"},
		{"1.50", "1.5"},
		{"-1.50", "-1.5"},
		{".5", "0.5"},
		{"5.", "5"},
		{"1e3", "1000"},
		{"1.5E+2", "150"},
		{"1E-3", "0.001"},
		{"100", "100"},
		{digits, digits},
		{"-" + digits, "-" + digits},
		{"0." + digits, "0." + digits},
		{digits + "000", digits + "000"},
		{"000" + digits, digits},
		{digits[:20] + "." + digits[20:] + "00", digits[:20] + "." + digits[20:]},
		{"1E+125", "1" + strings.Repeat("0", 125)},
		{strings.Repeat("9", 38) + "E+88", strings.Repeat("9", 38) + strings.Repeat("0", 88)},
		{"1E-130", "0." + strings.Repeat("0", 129) + "1"},
		{"-1E-130", "-0." + strings.Repeat("0", 129) + "1"},
	} {
		cases = append(cases, Case{
			Name:  fmt.Sprintf("%s is returned as %s", c.put, shortened(c.get)),
			Given: []Item{item(Item{"n": num(c.put)})},
			When:  Get{},
			Want:  Reply{Item: item(Item{"n": num(c.get)})},
		})
	}
	tooLong := "Attempting to store more than 38 significant digits in a Number"
	overflow := "Number overflow. Attempting to store a number with magnitude larger than supported range"
	underflow := "Number underflow. Attempting to store a number with magnitude smaller than supported range"
	for _, c := range []struct{ put, text string }{
		{digits + "3", tooLong},
		{"1." + digits, tooLong},
		{"1E+126", overflow},
		{"-1E+126", overflow},
		{"1E-131", underflow},
		{"x", "The parameter cannot be converted to a numeric value: x"},
		{"1 ", "The parameter cannot be converted to a numeric value: 1 "},
		{"", "The parameter cannot be converted to a numeric value"},
		{"0x10", "The parameter cannot be converted to a numeric value: 0x10"},
		{"NaN", "The parameter cannot be converted to a numeric value: NaN"},
		{"Infinity", "The parameter cannot be converted to a numeric value: Infinity"},
	} {
		cases = append(cases, Case{
			Name: fmt.Sprintf("%q is not a number", c.put),
			When: Put{Item: item(Item{"n": num(c.put)})},
			Want: invalid(c.text),
			Then: []Item{},
		})
	}
	return append(cases,
		Case{
			Name: "an update returns the number it stored",
			When: Update{Do: "SET n = :n", Values: Item{":n": num("01.50")}, Return: types.ReturnValueUpdatedNew},
			Want: Reply{Item: Item{"n": num("1.5")}},
		},
		Case{
			Name:  "a number key is found by its value",
			Table: numberHashKey,
			Given: []Item{{"pk": num("1.0"), "x": str("y")}},
			When:  Get{Key: Item{"pk": num("1E0")}},
			Want:  Reply{Item: Item{"pk": num("1"), "x": str("y")}},
		},
		Case{
			Name:  "number keys are in the order of numbers",
			Table: numberRange,
			Given: numbered("10", "9", "-1", "-10", "0", "0.5", "1E+125", "-1E+125", "1E-130", "-1E-130", "1.5", "-1.5", "100"),
			When:  Query{Where: "pk = :p", Values: Item{":p": str("a")}},
			Want: Reply{Items: numbered("-1"+strings.Repeat("0", 125), "-10", "-1.5", "-1", "-0."+strings.Repeat("0", 129)+"1", "0",
				"0."+strings.Repeat("0", 129)+"1", "0.5", "1.5", "9", "10", "100", "1"+strings.Repeat("0", 125))},
		},
		Case{
			Name:  "numbers that differ in the 38th digit are in order",
			Table: numberRange,
			Given: numbered(digits, digits[:37]+"1", digits[:37]+"3"),
			When:  Query{Where: "pk = :p AND sk >= :n", Values: Item{":p": str("a"), ":n": num(digits)}},
			Want:  Reply{Items: numbered(digits, digits[:37]+"3")},
		},
		Case{
			Name: "a set of numbers cannot contain text",
			When: Put{Item: item(Item{"s": nums("1", "x", "0")})},
			Want: invalid("The parameter cannot be converted to a numeric value: x"),
			Then: []Item{},
		},
		Case{
			Name: "a set of numbers cannot contain a value twice",
			When: Put{Item: item(Item{"s": nums("1", "1.0")})},
			Want: invalid("Input collection contains duplicates"),
			Then: []Item{},
		},
	)
}

// shortened returns the text of a number with most of its zeros removed, for the name of a
// test.
func shortened(n string) string {
	zeros := strings.Repeat("0", 80)
	if before, after, ok := strings.Cut(n, zeros); ok {
		return before + "0..." + after
	}
	return n
}

// numbered returns items that have the same hash key, and the given numbers as sort keys.
func numbered(sk ...string) []Item {
	var items []Item
	for _, n := range sk {
		items = append(items, Item{"pk": str("a"), "sk": num(n)})
	}
	return items
}
