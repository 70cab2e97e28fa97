// Package expr parses DynamoDB's expressions: condition, filter and key-condition
// expressions, update expressions, projection expressions, and the document paths in them.
//
// It turns text into trees. It does not know items or values: a [Placeholder] stays a name
// until the engine resolves it. It refuses an expression only for faults of the text
// itself: syntax, reserved words, function names and their number of operands. The [Error]
// has DynamoDB's own text after "Invalid ConditionExpression: ". The engine checks
// everything that depends on ExpressionAttributeNames or ExpressionAttributeValues.
//
// Trees never change once parsed, so many requests can use the same tree at the same time.
//
// Source of the grammar:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.OperatorsAndFunctions.html,
// and the pages Expressions.UpdateExpressions.html and Expressions.Attributes.html beside
// it. The error texts are from DynamoDB Local 2.6.1. The service has the same texts.
package expr
