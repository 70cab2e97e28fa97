// Package adapters has leasehold take the place of a lock in other Go programs:
// certmagic, goose, robfig/cron and controller-runtime. docs/integrations.md quotes
// it: take the functions, there is nothing to import. The tests run the code of
// those projects. It is a module of its own, as theirs are large.
package adapters
