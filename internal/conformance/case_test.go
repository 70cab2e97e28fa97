package conformance

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/leasehold-go/leasehold/internal/lab"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformanceCasesHaveUniqueNames(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range subjects() {
		for _, c := range s.cases {
			name := s.name + "/" + c.Name
			lab.Want(t, "two cases are named "+name, seen[name], false)
			seen[name] = true
		}
	}
	const promised = 150
	if len(seen) < promised {
		t.Errorf("there are %d cases, fewer than %d", len(seen), promised)
	}
	t.Logf("%d cases", len(seen))
}

func TestEveryKnownDifferenceFromDynamoDBHasConformanceCase(t *testing.T) {
	for _, engine := range []string{"dynoxide", "DynamoDB Local"} {
		left := differences(engine)
		for _, s := range subjects() {
			for _, c := range s.cases {
				d := left[s.name+"/"+c.Name]
				if d == nil {
					continue
				}
				if d.words != "" && c.Want.Err == nil {
					t.Errorf("%s: %s/%s has an error text, but its case expects no error", engine, s.name, c.Name)
				}
				delete(left, s.name+"/"+c.Name)
			}
		}
		for name := range left {
			t.Errorf("%s: there is no case %q", engine, name)
		}
	}
}

func TestReplyComparisonAcceptsOnlyEquivalentReplies(t *testing.T) {
	reason := func(code, text string, old Item) Reply { return canceled(Reason{code, text, old}) }
	for _, c := range []struct {
		name      string
		want, got Reply
		same      bool
	}{
		{"equal items", Reply{Item: item(Item{"n": num("1")})}, Reply{Item: item(Item{"n": num("1")})}, true},
		{"another value", Reply{Item: item(Item{"n": num("1")})}, Reply{Item: item(Item{"n": num("2")})}, false},
		{"another type", Reply{Item: item(Item{"n": num("1")})}, Reply{Item: item(Item{"n": str("1")})}, false},
		{"another form of a number", Reply{Item: item(Item{"n": num("1")})}, Reply{Item: item(Item{"n": num("1.0")})}, false},
		{"sets in another order", Reply{Item: Item{"s": strs("a", "b")}}, Reply{Item: Item{"s": strs("b", "a")}}, true},
		{"lists in another order", Reply{Item: Item{"l": list(num("1"), num("2"))}}, Reply{Item: Item{"l": list(num("2"), num("1"))}}, false},
		{"items in another order", Reply{Items: []Item{key("a", "1"), key("a", "2")}}, Reply{Items: []Item{key("a", "2"), key("a", "1")}}, false},
		{"an item too many", Reply{}, Reply{Items: []Item{item(nil)}}, false},
		{"a key of the next page", Reply{}, Reply{Last: item(nil)}, false},
		{"another capacity", Reply{Capacity: 1}, Reply{Capacity: 2}, false},
		{"an error instead of a reply", Reply{}, invalid("x"), false},
		{"a reply instead of an error", invalid(""), Reply{}, false},
		{"another error", invalid(""), conditionFailed(nil), false},
		{"another text", invalid("x"), invalid("y"), false},
		{"any text", invalid(""), invalid("y"), true},
		{"a text with a gap", invalid("a…c"), invalid("a\nbc"), true},
		{"a text with the table's name", invalid("no {table}"), invalid("no such-table"), true},
		{"a text after a number of errors", invalid("x"), invalid("1 validation error detected: x"), true},
		{
			"a text that repeats the value", invalid("Value at 'limit' failed to satisfy constraint: y"),
			invalid("1 validation error detected: Value '0' at 'Limit' failed to satisfy constraint: y"), true,
		},
		{
			"a value of another field", invalid("Value at 'limit' failed to satisfy constraint: y"),
			invalid("1 validation error detected: Value '0' at 'segment' failed to satisfy constraint: y"), false,
		},
		{"an old item too few", conditionFailed(item(nil)), conditionFailed(nil), false},
		{"an old item too many", conditionFailed(nil), conditionFailed(item(nil)), false},
		{"equal reasons", reason("A", "b", item(nil)), reason("A", "b", item(nil)), true},
		{"another reason", reason("A", "b", nil), reason("B", "b", nil), false},
		{"a reason of another text", reason("A", "b", nil), reason("A", "c", nil), false},
		{"a reason without its item", reason("A", "b", item(nil)), reason("A", "b", nil), false},
		{"a reason too few", canceled(Reason{Code: "A"}, Reason{Code: "A"}), canceled(Reason{Code: "A"}), false},
	} {
		lab.Want(t, c.name, c.want.matches(c.got, "such-table"), c.same)
	}
}
