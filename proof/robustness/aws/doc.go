// Package aws answers every operation with every error that is known from DynamoDB, the
// network and the source of credentials.
package aws
