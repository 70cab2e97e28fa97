package table_test

import (
	"context"
	"fmt"
	"log"

	"github.com/leasehold-go/leasehold/layout"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/table"
)

// In tests, the program creates its own lock table. In production, it checks whether the
// existing table fits the layout.
func Example() {
	ctx := context.Background()
	engine := localdynamo.New()
	defer engine.Close()
	db := engine.Client() // on AWS: dynamodb.NewFromConfig(cfg)
	if err := table.Create(ctx, db, table.Spec{Name: "locks", Layout: layout.Native{TTL: "-"}}); err != nil {
		log.Fatal(err)
	}

	problems, err := table.Check(ctx, db, table.Spec{Name: "locks"})
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range problems {
		fmt.Println(p.Fatal, p.What)
	}

	// Output:
	// false TTL is off, so released records stay until somebody deletes them: turn it on for the attribute "expiresAt"
}

func ExampleSpec_Terraform() {
	fmt.Print(table.Spec{Name: "locks", Tags: map[string]string{"team": "billing"}}.Terraform())
	// Output:
	// resource "aws_dynamodb_table" "locks" {
	//   name                        = "locks"
	//   billing_mode                = "PAY_PER_REQUEST"
	//   hash_key                    = "key"
	//   deletion_protection_enabled = true
	//
	//   attribute {
	//     name = "key"
	//     type = "S"
	//   }
	//
	//   ttl {
	//     attribute_name = "expiresAt"
	//     enabled        = true
	//   }
	//
	//   tags = {
	//     "team" = "billing"
	//   }
	//
	//   point_in_time_recovery {
	//     enabled = true
	//   }
	//
	//   lifecycle {
	//     prevent_destroy = true # its records are the locks
	//   }
	// }
}

func ExampleSpec_CloudFormation() {
	fmt.Print(table.Spec{Name: "locks", Tags: map[string]string{"team": "billing"}}.CloudFormation())
	// Output:
	// AWSTemplateFormatVersion: "2010-09-09"
	// Description: Lock table of leasehold
	// Resources:
	//   LockTable:
	//     Type: AWS::DynamoDB::Table
	//     DeletionPolicy: Retain
	//     UpdateReplacePolicy: Retain
	//     Properties:
	//       TableName: "locks"
	//       BillingMode: PAY_PER_REQUEST
	//       AttributeDefinitions:
	//         - AttributeName: "key"
	//           AttributeType: S
	//       KeySchema:
	//         - AttributeName: "key"
	//           KeyType: HASH
	//       TimeToLiveSpecification:
	//         AttributeName: "expiresAt"
	//         Enabled: true
	//       DeletionProtectionEnabled: true
	//       PointInTimeRecoverySpecification:
	//         PointInTimeRecoveryEnabled: true
	//       Tags:
	//         - Key: "team"
	//           Value: "billing"
	// Outputs:
	//   LockTableArn:
	//     Description: ARN for the IAM policies of the table's clients
	//     Value:
	//       Fn::GetAtt: [LockTable, Arn]
}

func ExampleSpec_Policy() {
	policy, err := table.Spec{Name: "locks"}.Policy("arn:aws:dynamodb:eu-west-1:123456789012:table/locks", table.Read)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(policy)
	// Output:
	// {
	//   "Version": "2012-10-17",
	//   "Statement": [
	//     {
	//       "Effect": "Allow",
	//       "Action": [
	//         "dynamodb:GetItem",
	//         "dynamodb:Query",
	//         "dynamodb:Scan"
	//       ],
	//       "Resource": "arn:aws:dynamodb:eu-west-1:123456789012:table/locks"
	//     }
	//   ]
	// }
}
