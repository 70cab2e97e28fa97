// Package expr parses DynamoDB's expressions: condition, filter and key-condition
// expressions, update expressions, projection expressions, and the document paths in them.
//
// The package parses text into trees. It does not use items or values: a [Placeholder] stays a
// name until the engine resolves it. The package refuses an expression only for errors in the
// text itself: syntax, reserved words, names of functions, and numbers of operands. An [Error]
// contains the text that DynamoDB puts after "Invalid ConditionExpression: ". The engine checks
// everything that depends on ExpressionAttributeNames or ExpressionAttributeValues.
//
// A tree never changes after parsing, so many requests can use it at the same time.
//
// Source of the grammar:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.OperatorsAndFunctions.html,
// and the pages Expressions.UpdateExpressions.html and Expressions.Attributes.html in that folder.
// The error texts are those of DynamoDB Local 2.6.1. DynamoDB has the same texts.
package expr
