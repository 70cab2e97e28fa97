// Package textfile writes the file of "leasehold run --metrics", which the textfile
// collector of Prometheus's node exporter reads. The file contains metrics of the last run,
// and results of earlier runs, such as how many lost their locks. If the file contains anything but
// metrics of the run's key and table, leasehold refuses the file before the run begins.
package textfile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/plainfile"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// Run collects the metrics of one "leasehold run".
type Run struct {
	path   string // path as the user gave it; empty without --metrics
	file   string // path with symbolic links resolved
	labels string // labels of each metric, such as key="NAME"
	began  time.Time

	Granted time.Time // time of the grant; zero if the lock was not granted
	Ended   time.Time // time at which CMD had ended and the lock was released; zero before that
}

const metricPrefix = "leasehold_run_"

// metrics lists the metrics in the order in which the file contains them. metricPrefix
// precedes each name.
var metrics = []struct{ name, kind, help string }{
	{"last_success_timestamp_seconds", "gauge", "When a run last ended with exit code 0."},
	{"last_failure_timestamp_seconds", "gauge", "When a run last ended with another exit code, except if the key was not granted."},
	{"last_not_granted_timestamp_seconds", "gauge", "When a run last ended because the key was not granted."},
	{"last_exit_code", "gauge", "Exit code of the last run."},
	{"last_wait_seconds", "gauge", "How long the last run waited for the key."},
	{"last_held_seconds", "gauge", "How long the key was held by the last run that was granted it."},
	{"lost_total", "counter", "Runs that lost the lock."},
}

// Open returns a Run that will write its metrics to path. It returns an error if path is
// not a .prom file that this run can write.
func Open(path string, now time.Time, p store.Place, keys []string, sortKey string) (Run, error) {
	if filepath.Ext(path) != ".prom" {
		return Run{}, failure.Misusef("--metrics %s: the node exporter reads only files whose names end in .prom", visible.Name(path))
	}
	file, err := plainfile.Named(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Run{}, failure.Misusef("--metrics %s: there is no such directory: create it first", visible.Name(path))
	case err != nil:
		return Run{}, failure.Misusef("--metrics %s: %v", visible.Name(path), failure.WithoutPath(err))
	}
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		return Run{}, failure.Misusef("--metrics %s: this is not a regular file", visible.Name(path))
	}
	r := Run{path: path, file: file, began: now}
	table := p.Table
	if p.File != "" {
		table = "" // omitted for a local store, because the label file identifies it
	}
	escape := strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
	var labels []string
	for _, l := range [][2]string{{"key", strings.Join(keys, ",")}, {"sort_key", sortKey}, {"file", p.File}, {"table", table}} {
		if l[1] != "" {
			labels = append(labels, l[0]+`="`+escape.Replace(l[1])+`"`)
		}
	}
	r.labels = strings.Join(labels, ",")
	if _, _, err = r.read(); err != nil {
		return Run{}, err
	}
	return r, nil
}

// read returns the content of the file, and the metrics in it by name. If the file does not
// exist, content is nil. It returns an error if the file contains anything but metrics of this
// run's key and table.
func (r *Run) read() (content []byte, values map[string]float64, err error) {
	refuse := func(why any) error { return failure.Misusef("--metrics %s: %v", visible.Name(r.path), why) }
	values = map[string]float64{}
	content, err = plainfile.ReadNamed(r.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, values, nil
	}
	if err != nil {
		return nil, nil, refuse(failure.WithoutPath(err))
	}
	for line := range strings.Lines(string(content)) {
		if strings.HasPrefix(line, "# HELP "+metricPrefix) || strings.HasPrefix(line, "# TYPE "+metricPrefix) {
			continue
		}
		named, labelled, found := strings.Cut(line, "{")
		name, prefixed := strings.CutPrefix(named, metricPrefix)
		if !found || !prefixed {
			return nil, nil, refuse("the file holds something else, which would be lost: name another file")
		}
		value, ours := strings.CutPrefix(strings.TrimSuffix(labelled, "\n"), r.labels+"} ")
		if values[name], err = strconv.ParseFloat(value, 64); !ours || err != nil {
			return nil, nil, refuse("the file holds the metrics of another key or table: use one file for each, or remove this one")
		}
	}
	return content, values, nil
}

// Write writes the metrics of this run, if --metrics is given. The parameter "code" is the exit
// code of leasehold, and "err" is the error of the run, or nil. Callers print an error of Write
// only as a warning, because CMD has already run.
func (r *Run) Write(now time.Time, code int, err error) error {
	if r.path == "" {
		return nil
	}
	for { // repeated if another run of the same key, as with --permits, has just written the file
		content, values, problem := r.read()
		if problem == nil {
			r.change(values, now, code, err)
			problem = plainfile.Swap(r.file, content, r.text(values), 0o644) // mode 0644, because the node exporter runs as another user
		}
		switch {
		case problem == nil:
			return nil
		case !errors.Is(problem, plainfile.ErrChanged):
			return fmt.Errorf("the metrics could not be written to %s: %w", visible.Name(r.path), failure.WithoutPath(problem))
		}
	}
}

// change adds the result of this run to values, which contains the metrics from the file.
func (r *Run) change(values map[string]float64, now time.Time, code int, err error) {
	values["lost_total"] += 0 // create this metric in the first run, so that Prometheus sees an increase when a lock is first lost
	values["last_exit_code"] = float64(code)
	values["last_wait_seconds"] = cmp.Or(r.Granted, now).Sub(r.began).Seconds()
	if !r.Granted.IsZero() {
		values["last_held_seconds"] = cmp.Or(r.Ended, now).Sub(r.Granted).Seconds()
	}
	ended := "failure"
	switch {
	case r.Granted.IsZero() && failure.NotGranted(err): // checks err and not code, because -E 0 makes leasehold exit with 0 in this case
		ended = "not_granted"
	case code == 0:
		ended = "success"
	}
	values["last_"+ended+"_timestamp_seconds"] = float64(now.UnixMilli()) / 1000
	if errors.Is(err, leasehold.ErrLost) {
		values["lost_total"]++
	}
}

// text returns values in the text format of Prometheus.
func (r *Run) text(values map[string]float64) []byte {
	var b []byte
	for _, of := range metrics {
		if value, ok := values[of.name]; ok {
			b = fmt.Appendf(b, "# HELP %s %s\n# TYPE %[1]s %[3]s\n%[1]s{%[4]s} %[5]s\n", metricPrefix+of.name, of.help, of.kind, r.labels, strconv.FormatFloat(value, 'g', -1, 64))
		}
	}
	return b
}
