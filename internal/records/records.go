// Package records encodes and decodes lock records. For each layout it makes the
// conditional write of every operation, decodes items, and knows the keys of
// other rows. It does not know the client, the network or waiting. Package
// layout, which users configure, does not know this package.
package records

import (
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

// Of returns the protocol of a layout. The error lists everything that is wrong
// with the layout's configuration, such as attribute names that clash.
func Of(l layout.Layout) (protocol.Protocol, error) {
	switch l := l.(type) {
	case layout.Native:
		return newNative(l)
	case layout.AWSLabs:
		return newAWSLabs(l)
	case layout.Dynamolock:
		return newDynamolock(l)
	case layout.PythonDynamoDBLock:
		return newPython(l)
	case layout.DynamoDLM:
		return newDLM(l)
	case layout.DyndbMutex:
		return newMutex(l)
	}
	return nil, fmt.Errorf("layout: %T is not a layout: use a struct of package layout, not a pointer to it", l)
}

// WithMaxSkew does what Of does, for a client whose wall clock is never wrong by more than
// skew. If skew is 0, the client's clock is not bounded. The error matches
// errors.ErrUnsupported if the layout's records do not contain when their leases end.
func WithMaxSkew(l layout.Layout, skew time.Duration) (protocol.Protocol, error) {
	p, err := Of(l)
	if err != nil || skew <= 0 {
		return p, err
	}
	if n, ok := p.(native); ok {
		n.record.skew = skew
		return native{lock{n.record}, n.record}, nil
	}
	return p, fmt.Errorf("layout: %s: %w", l.Name(), errors.ErrUnsupported)
}
