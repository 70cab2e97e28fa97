package conformance

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// scanCases returns the cases for scans of a whole table, in pages and in parallel segments.
func scanCases() []Case {
	all := fiveAndOne()
	scan := func(name string, s Request, want Reply) Case {
		return Case{Name: name, Table: rangeKey, Given: all, When: s, Want: want}
	}
	return []Case{
		{Name: "an empty table", When: Scan{}},
		scan("all items", Scan{}, Reply{Items: all}),
		scan("eventually consistent", Scan{Eventual: true}, Reply{Items: all}),
		scan("a filter may use keys", Scan{Filter: "sk = :v", Values: Item{":v": str("1")}},
			Reply{Items: []Item{all[0], all[5]}, Scanned: 6}),
		scan("a filter that no item passes", Scan{Filter: "attribute_exists(nope)"}, Reply{Scanned: 6}),
		scan("a count", Scan{Select: types.SelectCount}, Reply{Count: 6}),
		scan("a count with a filter", Scan{Select: types.SelectCount, Filter: "n > :n", Values: Item{":n": num("20")}}, Reply{Count: 4, Scanned: 6}),
		scan("pages of one have every item once", paged(1, 1), Reply{Items: all}),
		scan("pages of four have every item once", paged(4, 1), Reply{Items: all}),
		scan("three segments have every item once", paged(0, 3), Reply{Items: all}),
		scan("segments in pages have every item once", paged(1, 4), Reply{Items: all}),
		scan("one segment is the whole table", Scan{Segment: aws.Int32(0), Segments: aws.Int32(1)}, Reply{Items: all}),
		scan("a segment without the number of segments", Scan{Segment: aws.Int32(0)},
			invalid("The TotalSegments parameter is required but was not present in the request when Segment parameter is present")),
		scan("a number of segments without a segment", Scan{Segments: aws.Int32(2)},
			invalid("The Segment parameter is required but was not present in the request when parameter TotalSegments is present")),
		scan("a segment beyond the number of segments", Scan{Segment: aws.Int32(2), Segments: aws.Int32(2)},
			invalid("The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: 2 is not less than TotalSegments: 2")),
		scan("a limit below one", Scan{Limit: -1},
			invalid("1 validation error detected: Value '-1' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1")),
		scan("a start with half a key", Scan{Start: Item{"pk": str("a")}},
			invalid("The provided starting key is invalid: The provided key element does not match the schema")),
		scan("a count with a projection", Scan{Select: types.SelectCount, Project: "n"},
			invalid("Cannot specify the ProjectionExpression when choosing to get only the Count")),
	}
}

// paged returns a request that reads the whole table in pages of the given size, one segment after
// another.
func paged(limit, segments int32) Request {
	return Call(func(ctx context.Context, client *dynamodb.Client, table string) (Reply, error) {
		var all []Item
		for segment := range segments {
			scan := Scan{Limit: limit, Segment: &segment, Segments: &segments}
			for {
				page, err := scan.send(ctx, target{client: client, table: table})
				if err != nil {
					return Reply{}, err
				}
				all = append(all, page.Items...)
				if page.Last == nil {
					break
				}
				scan.Start = page.Last
			}
		}
		return Reply{Items: inAnyOrder(all)}, nil
	})
}
