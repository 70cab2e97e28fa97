// Package grants is what is held from one command to the next: grants, and the files that
// acquire, renew and release keep them in.
//
// A grant (Grant) says of which store it is, for in another one it would seem lost. It is
// renewed and released there, whatever the environment says; a flag that leads elsewhere
// is refused.
//
// A file of a grant (File) is a regular one, as release reads it back; a stream goes
// through standard input and output. It has mode 0600, and is
//
//   - opened before any request is sent, and then refused if it could not be written, if
//     it may be another user's (package plainfile), or if its content is of value: anything
//     but a grant that has ended, or will have once this one is made;
//   - replaced as a whole or not at all, even if power fails;
//   - replaced or removed only if it holds what it held when it was opened: of two commands
//     that write to it at once one succeeds, and the other has its grant yet, to release it.
package grants
