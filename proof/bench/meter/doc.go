// Package meter stands between clients and a server of the DynamoDB API: as far
// away as a network would be, and counting what they ask for.
package meter
