// Package fencing writes to PostgreSQL and to S3 such that a holder who has lost
// its lock cannot write over what a later one wrote. docs/recipes.md quotes
// it: take the functions, there is nothing to import.
//
// Each write carries the token of its lock, and the target remembers the greatest
// one beside the data. That makes a condition of the target's own the guard:
// neither a clock nor the lock's table is asked.
//
// The tests run on a real PostgreSQL, and on gofakes3, a server of the S3 API
// that keeps objects in memory, compares If-Match and If-None-Match in one step
// with the write, and makes an ETag of the content alone, as S3 does for an
// object that was put in one piece and is not encrypted with a key of KMS.
package fencing
