// Package grants keeps a grant between two commands: acquire stores it in a file, and renew
// and release read it from there.
//
// A grant (Grant) also names the store that granted the lock. Only that store knows the
// grant: any other would report it as lost. So renew and release use that store, even if the
// environment names another. They refuse a flag that names another store.
//
// A grant's file (File) is a regular file, because release must be able to read it again.
// The commands can also use standard input and output instead of a file. The file has mode
// 0600, and is
//
//   - opened before any request is sent. leasehold refuses it if it could not be written, or if
//     it may belong to another user (package plainfile). It also refuses a file with content,
//     except a grant that has ended, or an earlier grant of the same key. That earlier grant
//     will have ended when the new grant is written;
//   - replaced entirely or not at all, even if the machine loses power;
//   - replaced or removed only if its content has not changed since it was opened. If two
//     commands write to one file at the same time, one succeeds. The other command reports an
//     error, and can still release its own grant.
package grants
