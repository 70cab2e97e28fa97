// Package dashboard tests the Grafana dashboard, and the page of the metrics in docs,
// against the metrics that leaseholdprom exports. It parses their queries with Prometheus,
// a module that users of the adapter should not have to load.
package dashboard
