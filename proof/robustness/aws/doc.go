// Package aws tests every operation with every known error of DynamoDB, of the network and
// of the source of credentials.
package aws
