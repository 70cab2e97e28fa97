package table

import (
	"maps"
	"slices"
)

// CloudFormation returns a CloudFormation template for the table, in YAML. If the stack is deleted,
// the table stays, because it contains the locks and their tokens. The template also turns on
// deletion protection and point-in-time recovery. If Spec.Disposable is true, the table is deleted
// with the stack, point-in-time recovery is off, and deletion protection is on only if
// Spec.DeletionProtection is true. If Create would refuse the spec, CloudFormation returns the text
// of the error, which is not a valid template.
func (s Spec) CloudFormation() string {
	want, err := s.complete()
	if err != nil {
		return refused(err)
	}
	var t text
	t.line(0, `AWSTemplateFormatVersion: "2010-09-09"`)
	t.line(0, "Description: Lock table of leasehold")
	t.line(0, "Resources:")
	t.line(1, "LockTable:")
	t.line(2, "Type: AWS::DynamoDB::Table")
	kept := "Retain"
	if s.Disposable {
		kept = "Delete"
	}
	t.line(2, "DeletionPolicy: %s", kept)
	t.line(2, "UpdateReplacePolicy: %s", kept)
	t.line(2, "Properties:")
	t.line(3, "TableName: %s", quote(s.Name))
	if s.ReadUnits > 0 {
		t.line(3, "BillingMode: PROVISIONED")
		t.line(3, "ProvisionedThroughput:")
		t.line(4, "ReadCapacityUnits: %d", s.ReadUnits)
		t.line(4, "WriteCapacityUnits: %d", s.WriteUnits)
	} else {
		t.line(3, "BillingMode: PAY_PER_REQUEST")
	}
	keys := keysOfSchema(want)
	t.line(3, "AttributeDefinitions:")
	for _, k := range keys {
		t.line(4, "- AttributeName: %s", quote(k.name))
		t.line(4, "  AttributeType: %s", k.attribute)
	}
	t.line(3, "KeySchema:")
	for _, k := range keys {
		t.line(4, "- AttributeName: %s", quote(k.name))
		t.line(4, "  KeyType: %s", k.role)
	}
	if want.TTL != "" {
		t.line(3, "TimeToLiveSpecification:")
		t.line(4, "AttributeName: %s", quote(want.TTL))
		t.line(4, "Enabled: true")
	}
	if s.DeletionProtection || !s.Disposable {
		t.line(3, "DeletionProtectionEnabled: true")
	}
	if !s.Disposable {
		t.line(3, "PointInTimeRecoverySpecification:")
		t.line(4, "PointInTimeRecoveryEnabled: true")
	}
	if len(s.Tags) > 0 {
		t.line(3, "Tags:")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Tags)) {
		t.line(4, "- Key: %s", quote(name))
		t.line(4, "  Value: %s", quote(s.Tags[name]))
	}
	t.line(0, "Outputs:")
	t.line(1, "LockTableArn:")
	t.line(2, "Description: ARN for the IAM policies of the table's clients")
	t.line(2, "Value:")
	t.line(3, "Fn::GetAtt: [LockTable, Arn]")
	return t.String()
}
