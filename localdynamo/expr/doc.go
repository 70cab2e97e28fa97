// Package expr is the grammar of DynamoDB's expressions: condition, filter and
// key-condition expressions, update expressions, projection expressions and the
// document paths in them.
//
// It turns text into trees and knows nothing of items or values: a
// [Placeholder] stays a name until the engine binds it. What can be refused by
// looking at the text alone is refused here (syntax, reserved words, function
// names and their number of operands), as an [Error] whose text is DynamoDB's
// own after "Invalid ConditionExpression: ". What needs the request's
// ExpressionAttributeNames or ExpressionAttributeValues is refused by the engine.
//
// Trees are immutable once parsed, so one may be kept and used by many requests
// at once.
//
// Source of the grammar:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.OperatorsAndFunctions.html
// and Expressions.UpdateExpressions.html, Expressions.Attributes.html beside it.
// The texts of errors are those of DynamoDB Local 2.6.1, which shares them with
// the service.
package expr
