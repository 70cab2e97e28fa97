// Package recipe is the door between package leasehold and the recipes of this
// module, for what they need of a client and its users do not. It keeps such
// things out of the public surface, as internal packages of grpc-go do.
package recipe

import (
	"context"
	"iter"

	"github.com/leasehold-go/leasehold/internal/protocol"
)

// Client is a *leasehold.Client as the recipes see it. Keys and records are
// those of package protocol.
type Client interface {
	// Chance is a random number in [0, 1).
	Chance() float64

	// Watch looks at the record of a key again and again, as a waiter does,
	// and yields what each look has shown, the first at once. Requests that
	// DynamoDB does not answer are repeated inside; an error that stays, such
	// as a record that does not read, is yielded and ends the sequence. It
	// ends without one when ctx does.
	Watch(ctx context.Context, key protocol.Key) iter.Seq2[Sight, error]

	Permits
}

// Sight is what one look at a record has shown.
type Sight struct {
	Record *protocol.Record // nil: the key is free
	Grant  string           // what stays the same while one grant is renewed
	Dead   bool             // the holder is dead: nobody believes in the grant
}

// Of returns the inner side of a *leasehold.Client. Package leasehold sets it.
var Of func(client any) Client
