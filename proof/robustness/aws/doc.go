// Package aws meets every operation with every error that DynamoDB, the network and
// the source of credentials are known to answer with.
package aws
