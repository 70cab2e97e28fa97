// Package records spells lock records. For each layout it has the conditional
// write of every step, how an item reads, and the keys of other rows. It knows
// no client, no network and no waiting; package layout, which users configure,
// knows nothing of it.
package records

import (
	"fmt"

	"github.com/leasehold-go/leasehold/internal/protocol"
	"github.com/leasehold-go/leasehold/layout"
)

// Of returns how a layout's records are spelled. The error lists the attribute
// names that clash, and whatever else the layout cannot be configured to.
func Of(l layout.Layout) (protocol.Protocol, error) {
	p, err := spelling(l)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func spelling(l layout.Layout) (protocol.Protocol, error) {
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
	return nil, fmt.Errorf("layout: %T is no layout: use a struct of package layout, not a pointer to it", l)
}
