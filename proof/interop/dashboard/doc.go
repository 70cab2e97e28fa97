// Package dashboard tests the Grafana dashboard and docs/metrics.md against the metrics that
// leaseholdprom exports. It parses the queries of both with the module of Prometheus. The
// tests are not in the adapter's module, because users of the adapter should not have to
// download Prometheus.
package dashboard
