// Package adapters makes other Go programs use leasehold for their locks: certmagic, goose,
// robfig/cron and controller-runtime. docs/integrations.md quotes the package. Users copy its
// functions instead of importing it. The tests run the code of those projects. The package is
// in a module of its own, because those projects are large.
package adapters
