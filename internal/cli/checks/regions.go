package checks

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// regions reports which Regions serve. Only a strongly consistent read or a write shows
// that: a Region that is cut off from the others may still answer anything else.
func (t *Subject) regions(ctx context.Context) (found []Finding) {
	for _, client := range t.Regions() {
		name := client.Options().Region
		f := Finding{Check: "region", State: OK, What: name + " serves", Values: map[string]any{"region": name}}
		err := patiently(ctx, func(ctx context.Context) error {
			_, err := client.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(t.Table), Key: t.item, ConsistentRead: aws.Bool(true)},
				func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
			return err
		})
		if err != nil {
			f.State, f.What, f.Err = Warning, fmt.Sprintf("no strongly consistent read in %s", name), err
		}
		found = append(found, f)
	}
	return found
}
