package boltstore

import "time"

// WithPatience sets how long a transaction waits for the file lock if its context has no deadline.
func WithPatience(d time.Duration) Option { return func(f *file) { f.patience = d } }
