// Package records encodes and decodes lock records. For each layout it builds the
// conditional write of every operation, decodes items, and computes the keys of session
// rows. It sends no requests and does not wait. Package layout, which users configure, does
// not import package records.
package records

import (
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

// Of returns the protocol of a layout. The error lists all mistakes in the layout's
// configuration, such as two attributes with the same name.
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

// WithMaxSkew returns the protocol of a layout, as Of does, for a client whose wall clock
// is never wrong by more than skew. Zero means that the error of the clock is not known.
// WithMaxSkew returns an error that matches errors.ErrUnsupported if skew is above zero and
// the layout is not Native: only its records contain the time when the lease ends.
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
