// Package bridge is how the packages semaphore, rwlock and election reach what is inside a
// client. Permits, read/write locks and leaders who are asked to step down need more of it
// than users may have.
package bridge

import "errors"

// ErrAgain ends a wait that begins again: the event of a call that gives up is not for it.
var ErrAgain = errors.New("leasehold: semaphore resized")

// Inside returns what is inside a *leasehold.Client. Who uses it declares, as an interface,
// what it needs of that: the methods name types of the root, which imports this package.
// The root sets it when it is initialized, which is before the packages that import it.
var Inside func(client any) any
