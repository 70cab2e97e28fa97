// Package recipe is the door between package leasehold and the recipes of this
// module, for what they need of a client and its users do not. It keeps such
// things out of the public surface, as internal packages of grpc-go do.
package recipe

// Client is a *leasehold.Client as the recipes see it. Keys and records are
// those of package protocol.
type Client interface {
	// Chance is a random number in [0, 1).
	Chance() float64

	Permits
}

// Of returns the inner side of a *leasehold.Client. Package leasehold sets it.
var Of func(client any) Client
