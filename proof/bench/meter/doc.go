// Package meter is an HTTP proxy between clients and a DynamoDB server. It delays messages
// like a network, and counts requests and capacity units.
package meter
