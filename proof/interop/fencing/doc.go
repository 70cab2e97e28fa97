// Package fencing shows how to fence writes to PostgreSQL and to S3: a holder that has lost
// its lock cannot overwrite the writes of a later holder. docs/recipes.md quotes the package.
// Users copy its functions instead of importing it.
//
// Each write contains the token of its lock. The target (a row or an object) stores the
// greatest token so far beside the data, and refuses a write with a lower token. So the
// target itself checks the condition, without a clock and without the lock table.
//
// The tests run on a real PostgreSQL, and on gofakes3, a server of the S3 API that stores
// objects in memory. gofakes3 checks If-Match and If-None-Match atomically with the write.
// It computes an ETag from the content alone. S3 also computes the ETag from the content
// alone if an object was put in one piece and is not encrypted with a KMS key.
package fencing
