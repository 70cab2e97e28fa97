// Package adapters makes other Go programs use leasehold in place of another lock:
// certmagic, goose, robfig/cron and controller-runtime. docs/integrations.md quotes the
// package: copy the functions, because there is nothing to import. The tests run the code
// of those projects. The package is in a module of its own, because the modules of those
// projects are large.
package adapters
