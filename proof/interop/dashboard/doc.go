// Package dashboard tests the Grafana dashboard, and the metrics page in docs, against the
// metrics that leaseholdprom exports. It parses the queries of both with the module of
// Prometheus. It is not part of the adapter, because users of the adapter should not have
// to load this module.
package dashboard
