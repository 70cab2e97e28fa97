// Package dashboard tests the Grafana dashboard and docs/metrics.md against the metrics
// that leaseholdprom exports. It parses the queries in both with the Go module of
// Prometheus. The tests are not in the module leaseholdprom, because its users should not
// have to download Prometheus.
package dashboard
