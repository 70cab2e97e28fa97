// Package expr parses DynamoDB's expressions: condition, filter and key-condition
// expressions, update expressions, projection expressions, and the document paths
// in them.
//
// It turns text into trees. It does not know items or values: a [Placeholder]
// stays a name until the engine resolves it. It refuses what is wrong with the text
// alone: syntax, reserved words, function names and their number of operands. The
// [Error] has DynamoDB's own text after "Invalid ConditionExpression: ". The engine
// refuses what depends on ExpressionAttributeNames or ExpressionAttributeValues.
//
// Trees never change once parsed, so many requests can use the same tree at the
// same time.
//
// Source of the grammar:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.OperatorsAndFunctions.html
// and Expressions.UpdateExpressions.html, Expressions.Attributes.html beside it.
// Error texts are those of DynamoDB Local 2.6.1, which are also the service's.
package expr
