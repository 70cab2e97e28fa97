package conformance

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// limitCases returns the cases for the maximum sizes of items, keys and replies.
func limitCases() []Case {
	const itemLimit = 400 * 1024
	of := func(size int) Item { // DynamoDB counts names and values, including the name and value of the key
		return item(Item{"x": str(strings.Repeat("x", size-len("pk")-len("a")-len("x")))})
	}
	long := func(n int) string { return strings.Repeat("k", n) }
	putTooLarge := invalid("Item size has exceeded the maximum allowed size")
	updateTooLarge := invalid("Item size to update has exceeded the maximum allowed size")
	hashTooLong := invalid("One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 bytes")
	rangeTooLong := invalid("One or more parameter values were invalid: Aggregated size of all range keys has exceeded the size limit of 1024 bytes")
	var fourLarge []Item
	for _, sk := range []string{"1", "2", "3", "4"} {
		fourLarge = append(fourLarge, keyed("a", sk, Item{"x": str(strings.Repeat("x", 390*1024))}))
	}
	return []Case{
		{Name: "an item of 400 KB", When: Put{Item: of(itemLimit)}},
		{Name: "an item over 400 KB", When: Put{Item: of(itemLimit + 1)}, Want: putTooLarge, Then: []Item{}},
		{
			Name:  "an update to 400 KB",
			Given: []Item{of(itemLimit - 2)},
			When:  Update{Do: "SET y = :y", Values: Item{":y": str("y")}},
		},
		{
			Name:  "an update to more than 400 KB",
			Given: []Item{of(itemLimit - 2)},
			When:  Update{Do: "SET y = :y", Values: Item{":y": str("yy")}},
			Want:  updateTooLarge,
			Then:  []Item{of(itemLimit - 2)},
		},
		{
			Name:  "an update of a transaction to more than 400 KB",
			Given: []Item{of(itemLimit - 2)},
			When:  TransactWrite{Writes: []Request{Update{Do: "SET y = :y", Values: Item{":y": str("yy")}}}},
			Want:  canceled(Reason{Code: "ValidationError", Text: "Item size to update has exceeded the maximum allowed size"}),
			Then:  []Item{of(itemLimit - 2)},
		},
		{
			Name: "a put of a transaction over 400 KB",
			When: TransactWrite{Writes: []Request{Put{Item: of(itemLimit + 1)}}},
			Want: putTooLarge,
			Then: []Item{},
		},
		{Name: "a hash key of 2,048 bytes", When: Put{Item: Item{"pk": str(long(2048))}}, Then: []Item{{"pk": str(long(2048))}}},
		{Name: "a hash key over 2,048 bytes", When: Put{Item: Item{"pk": str(long(2049))}}, Want: hashTooLong, Then: []Item{}},
		{Name: "a hash key counts bytes, not characters", When: Put{Item: Item{"pk": str(strings.Repeat("ä", 1025))}}, Want: hashTooLong, Then: []Item{}},
		{Name: "UpdateItem by a hash key over 2,048 bytes", When: Update{Key: Item{"pk": str(long(2049))}}, Want: hashTooLong, Then: []Item{}},
		{Name: "GetItem by a hash key over 2,048 bytes", When: Get{Key: Item{"pk": str(long(2049))}}, Want: hashTooLong},
		{Name: "a range key of 1,024 bytes", Table: rangeKey, When: Put{Item: key("a", long(1024))}, Then: []Item{key("a", long(1024))}},
		{Name: "a range key over 1,024 bytes", Table: rangeKey, When: Put{Item: key("a", long(1025))}, Want: rangeTooLong, Then: []Item{}},
		{
			Name: "32 levels",
			When: Put{Item: item(Item{"x": nested(31)})},
		},
		{
			Name: "more than 32 levels",
			When: Put{Item: item(Item{"x": nested(33)})},
			Want: invalid("Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit"),
			Then: []Item{},
		},
		{
			Table: rangeKey,
			Name:  "a scan of more than 1 MB has pages",
			Given: fourLarge,
			When:  pages(func(start Item) Request { return Scan{Start: start} }),
			Want:  Reply{Count: 4, Detail: "2 pages"},
		},
		{
			Name:  "a query of more than 1 MB has pages",
			Table: rangeKey,
			Given: fourLarge,
			When: pages(func(start Item) Request {
				return Query{Where: "pk = :p", Values: Item{":p": str("a")}, Start: start}
			}),
			Want: Reply{Count: 4, Detail: "2 pages"},
		},
		{
			Name: "an expression of 4 KB",
			When: Put{If: "attribute_not_exists(" + long(4096-len("attribute_not_exists()")) + ")"},
			Then: []Item{item(nil)},
		},
		{
			Name: "an expression over 4 KB",
			When: Put{If: "attribute_not_exists(" + long(4097-len("attribute_not_exists()")) + ")"},
			Want: invalid("Invalid ConditionExpression: Expression size has exceeded the maximum allowed size; expression size: 4097"),
			Then: []Item{},
		},
	}
}

// nested returns the number 1 inside the given number of lists, each list inside the next one.
func nested(levels int) types.AttributeValue {
	if levels == 0 {
		return num("1")
	}
	return list(nested(levels - 1))
}

// pages returns a request that reads all pages of a Query or Scan, and counts the pages.
func pages(of func(start Item) Request) Request {
	return Call(func(ctx context.Context, client *dynamodb.Client, table string) (Reply, error) {
		var all Reply
		for n := 1; ; n++ {
			page, err := of(all.Last).send(ctx, target{client: client, table: table})
			if err != nil {
				return Reply{}, err
			}
			all.Count += int32(len(page.Items))
			all.Last = page.Last
			if page.Last == nil {
				all.Detail = fmt.Sprintf("%d pages", n)
				return all, nil
			}
		}
	})
}
