// Package fencing writes to PostgreSQL and to S3 so that a holder that has lost its lock
// cannot overwrite the writes of a later holder. docs/recipes.md quotes the package: copy
// the functions, because there is nothing to import.
//
// Each write carries the token of its lock, and the target remembers the greatest token
// beside the data. So the guard is a condition in the target itself: neither a clock nor
// the lock table is read.
//
// The tests run on a real PostgreSQL, and on gofakes3, a server of the S3 API that keeps
// objects in memory. gofakes3 compares If-Match and If-None-Match in one step with the
// write. It makes an ETag from the content alone. S3 does the same for an object that was
// put in one piece and is not encrypted with a KMS key.
package fencing
