package localdynamo_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/localdynamo"
)

func TestDeleteTableDeletesItsItems(t *testing.T) {
	eachStore(t, func(t *testing.T, e *localdynamo.Engine) {
		client := newTable(t, e)
		lab.OK(t, increment(t.Context(), client, "k"))
		lab.Must(client.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String("locks")}))(t)
		createTable(t, client)
		if get(t, client, "k") != nil {
			t.Error("a new table of the same name has the old one's item")
		}
	})
}

func TestProtectedTableIsNotDeleted(t *testing.T) {
	e := localdynamo.New()
	client := newTable(t, e)
	lab.Must(client.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: aws.String("locks"), DeletionProtectionEnabled: aws.Bool(true)}))(t)
	if _, err := client.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String("locks")}); err == nil {
		t.Error("it was deleted")
	}
}

func TestTagsAreKept(t *testing.T) {
	client := newTable(t, localdynamo.New())
	arn := aws.String("arn:aws:dynamodb:local:000000000000:table/locks")
	lab.Must(client.TagResource(t.Context(), &dynamodb.TagResourceInput{ResourceArn: arn, Tags: []types.Tag{
		{Key: aws.String("a"), Value: aws.String("1")}, {Key: aws.String("b"), Value: aws.String("2")},
	}}))(t)
	lab.Must(client.UntagResource(t.Context(), &dynamodb.UntagResourceInput{ResourceArn: arn, TagKeys: []string{"a"}}))(t)
	out, err := client.ListTagsOfResource(t.Context(), &dynamodb.ListTagsOfResourceInput{ResourceArn: arn})
	if err != nil || len(out.Tags) != 1 || *out.Tags[0].Key != "b" || *out.Tags[0].Value != "2" {
		t.Errorf("%v, %v", out.Tags, err)
	}
}
