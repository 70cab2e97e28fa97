// Package aws tests each operation of a lock client with each known error of DynamoDB, of
// the network and of the credential provider.
package aws
