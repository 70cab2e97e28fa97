// Package meter is a proxy between clients and a server of the DynamoDB API. It delays
// messages as a network would, and counts requests and units.
package meter
