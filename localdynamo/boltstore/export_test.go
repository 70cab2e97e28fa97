package boltstore

import "time"

// WithPatience sets how long a transaction waits whose context has no deadline.
func WithPatience(d time.Duration) Option { return func(f *file) { f.patience = d } }
