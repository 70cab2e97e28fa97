// Package grants keeps grants between commands: the grants, and the files in which acquire,
// renew and release store them.
//
// A grant (Grant) names its store, because any other store would show it as lost. renew and
// release use that store, whatever the environment says. They refuse a flag that names
// another store.
//
// A grant's file (File) is a regular file, as release reads it back; streams are only
// standard input and output. It has mode 0600, and is
//
//   - opened before any request is sent. It is refused if it could not be written, if it may
//     belong to another user (package plainfile), or if its content is of value: anything
//     but a grant that has ended, or that will have ended once the new grant is made;
//   - replaced entirely or not at all, even if power fails;
//   - replaced or removed only if its content has not changed since it was opened. If two
//     commands write to it at once, one succeeds, and the other still has its grant, to
//     release it.
package grants
