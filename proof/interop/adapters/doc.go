// Package adapters makes other Go programs use leasehold for their locks: certmagic, goose,
// robfig/cron and controller-runtime. docs/integrations.md quotes the package. Users copy
// its functions instead of importing it. The tests run the code of these four programs. The
// package is in a module of its own, because it has these large dependencies.
package adapters
