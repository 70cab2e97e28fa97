// Package adapters makes other Go libraries use leasehold for their locks: certmagic, goose,
// robfig/cron and controller-runtime. docs/integrations.md shows its functions. Users copy the
// functions from that page, and do not import the package. The tests run the code of these four
// libraries. These are large dependencies, so the package is not in the main module of leasehold.
package adapters
