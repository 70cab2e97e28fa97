// Package dashboard tests the Grafana dashboard, and the metrics page in docs, against the
// metrics that leaseholdprom exports. It parses the queries of both with Prometheus, a
// module that users of the adapter should not have to load.
package dashboard
