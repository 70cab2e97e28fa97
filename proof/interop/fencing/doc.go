// Package fencing shows how to fence writes to PostgreSQL and to S3: a holder that has lost its
// lock cannot overwrite the writes of a later holder. Users copy the functions instead of importing
// the package. docs/recipes.md explains them, and quotes SetPrice.
//
// Each write stores the token of its lock beside the data. The writes to PostgreSQL change no row
// that has a greater token. S3 cannot compare tokens: SaveIndex reads the token of the object, and
// S3 rejects the write if the object has changed since then. This needs no clock and no lock table.
//
// The tests run on a real PostgreSQL, and on gofakes3, a server of the S3 API that stores objects
// in memory. gofakes3 checks If-Match and If-None-Match atomically with the write. It computes an
// ETag from the content alone. S3 also computes the ETag from the content alone if an object was
// put in one piece and is not encrypted with a KMS key.
package fencing
