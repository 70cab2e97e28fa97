package protocol

import (
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func TestExpressionsContainPlaceholdersInsteadOfAttributeNames(t *testing.T) {
	w := NewUpdate(Item{"key": &types.AttributeValueMemberS{Value: "job"}})
	w.Set("data", &types.AttributeValueMemberB{Value: []byte("x")}) // DATA and OWNER are reserved words of DynamoDB expressions
	w.Set("owner", &types.AttributeValueMemberS{Value: "me"})
	w.Remove("isReleased")
	w.Where(w.In("owner", []string{"a", "b"}) + " AND attribute_exists(" + w.Name("data") + ")")
	in := w.UpdateItem("locks")
	if got, want := aws.ToString(in.UpdateExpression), "SET #0 = :0, #1 = :1 REMOVE #2"; got != want {
		t.Errorf("update %q, want %q", got, want)
	}
	if got, want := aws.ToString(in.ConditionExpression), "#1 IN (:2, :3) AND attribute_exists(#0)"; got != want {
		t.Errorf("condition %q, want %q", got, want)
	}
	if len(in.ExpressionAttributeNames) != 3 || len(in.ExpressionAttributeValues) != 4 {
		t.Errorf("names %v, values %v", in.ExpressionAttributeNames, in.ExpressionAttributeValues)
	}
}

func TestUpdateAndDeleteAskForOldItemIfTheirConditionFails(t *testing.T) {
	if in := NewUpdate(nil).UpdateItem("locks"); in.ReturnValuesOnConditionCheckFailure != types.ReturnValuesOnConditionCheckFailureAllOld || in.ReturnValues != types.ReturnValueAllNew {
		t.Errorf("an update asks for %v and %v", in.ReturnValuesOnConditionCheckFailure, in.ReturnValues)
	}
	if in := NewDelete(nil).DeleteItem("locks"); in.ReturnValuesOnConditionCheckFailure != types.ReturnValuesOnConditionCheckFailureAllOld {
		t.Errorf("a delete asks for %v", in.ReturnValuesOnConditionCheckFailure)
	}
}

func TestUpdateHasUniquePlaceholderForEachOperand(t *testing.T) {
	const many = 10 * usualOperands
	w := NewUpdate(nil)
	for i := range many {
		name := strconv.Itoa(i)
		w.Set(name, &types.AttributeValueMemberN{Value: name})
	}
	in := w.UpdateItem("locks")
	if len(in.ExpressionAttributeNames) != many || len(in.ExpressionAttributeValues) != many {
		t.Errorf("%d names and %d values, of %d", len(in.ExpressionAttributeNames), len(in.ExpressionAttributeValues), many)
	}
	for i := range many {
		name, set := strconv.Itoa(i), "#"+strconv.Itoa(i)+" = :"+strconv.Itoa(i)
		v, _ := in.ExpressionAttributeValues[":"+name].(*types.AttributeValueMemberN)
		if in.ExpressionAttributeNames["#"+name] != name || v == nil || v.Value != name || !strings.Contains(*in.UpdateExpression+",", set+",") {
			t.Errorf("attribute %s is %q = %v in %s", name, in.ExpressionAttributeNames["#"+name], v, *in.UpdateExpression)
		}
	}
}
