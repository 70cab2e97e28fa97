// Package grants keeps a grant between two commands: acquire stores it in a file, and renew
// and release read it from there.
//
// A grant (Grant) also names the store that granted the lock. Only that store knows the
// grant: any other would report it as lost. So renew and release use that store, even if the
// environment names another. They refuse a flag that names another store.
//
// A grant's file (File) must be a regular file, because release must be able to read the
// grant that acquire wrote. The commands can also use standard input and output instead of a
// file. The file has mode 0600, and is
//
//   - checked before any request is sent. leasehold refuses a file that it could not write, or
//     that may belong to another user (package plainfile). If the file is not empty, it must
//     contain a grant that has ended or a grant of the requested key. A grant of that key will
//     have ended by the time the command is granted the key and writes the file;
//   - replaced entirely or not at all, even if the machine loses power;
//   - replaced or removed only if its content has not changed since the command read it. If two
//     commands write to one file at the same time, one succeeds. The other command reports an
//     error, and can still release its own grant.
package grants
