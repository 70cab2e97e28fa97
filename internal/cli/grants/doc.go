// Package grants keeps a grant between two commands: acquire stores it in a file, and renew
// and release read it from there.
//
// A grant (Grant) also contains the store in which it was made. Only that store knows the
// grant: any other would report it as lost. renew and release use that store, even if the
// environment names another. They refuse a flag that names another store.
//
// A grant's file (File) is a regular file, because release must be able to read it again.
// The commands can also use standard input and output instead of a file. The file has mode
// 0600, and is
//
//   - opened before any request is sent. leasehold refuses it if it could not be written, or if
//     it may belong to another user (package plainfile). It also refuses a file with content,
//     unless this is a grant that has ended, or a grant of the same key, which the new one ends;
//   - replaced entirely or not at all, even if the machine loses power;
//   - replaced or removed only if its content has not changed since it was opened. If two
//     commands write to one file at once, one succeeds. The other reports an error. It
//     still has its grant, and can release it.
package grants
