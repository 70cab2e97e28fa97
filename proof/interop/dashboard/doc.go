// Package dashboard holds the Grafana dashboard and the page of the metrics in
// docs to what leaseholdprom exports. It parses their queries as Prometheus
// does, whose module nobody who exports metrics should have to load.
package dashboard
