// Package textfile writes the file of run --metrics, for the node exporter's textfile
// collector. The file contains the metrics of the last run. It also contains results of
// earlier runs: when a run last succeeded, and how many locks were lost. A file with any
// other content is refused before the run begins.
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

// Run collects the metrics of a run.
type Run struct {
	path   string // the path that the user named; empty without --metrics
	file   string // path without symbolic links
	labels string // the labels in the file
	began  time.Time

	Granted time.Time // time of the grant; zero before the grant
	Ended   time.Time // time when CMD had ended and the key was released; zero before that
}

const metricPrefix = "leasehold_run_"

// metrics lists the metrics in the order of the file. Their names omit metricPrefix.
var metrics = []struct{ name, kind, help string }{
	{"last_success_timestamp_seconds", "gauge", "When a run last ended with exit code 0."},
	{"last_failure_timestamp_seconds", "gauge", "When a run last ended with another exit code, except if the key was not granted."},
	{"last_not_granted_timestamp_seconds", "gauge", "When a run last ended because the key was not granted."},
	{"last_exit_code", "gauge", "Exit code of the last run."},
	{"last_wait_seconds", "gauge", "How long the last run waited for the key."},
	{"last_held_seconds", "gauge", "How long the key was held by the last run that was granted it."},
	{"lost_total", "counter", "Runs that lost the lock."},
}

// Open prepares to write metrics to path when a run ends. It returns an error if no such
// file can be written at path.
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
		table = "" // omit the table: another label contains the name of the file
	}
	escape := strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
	var labels []string
	for _, l := range [][2]string{{"key", strings.Join(keys, ",")}, {"sort_key", sortKey}, {"file", p.File}, {"table", table}} {
		if l[1] != "" {
			labels = append(labels, l[0]+`="`+escape.Replace(l[1])+`"`)
		}
	}
	r.labels = strings.Join(labels, ",")
	_, _, err = r.before()
	return r, err
}

// before returns the file's content and the values in it. The content is nil if there is no
// file. An error means that the file was not written by runs of this key.
func (r *Run) before() (content []byte, values map[string]float64, err error) {
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

// Write writes the metrics of the run, which ended with code and err, if there is a file. Callers show Write's
// error only as a warning, because CMD has already run.
func (r *Run) Write(now time.Time, code int, err error) error {
	if r.path == "" {
		return nil
	}
	for { // try again if another run of the same key, such as one with -p, has written meanwhile
		content, values, problem := r.before()
		if problem == nil {
			r.change(values, now, code, err)
			problem = plainfile.Swap(r.file, content, r.text(values), 0o644) // the node exporter runs as another user and must read the file
		}
		switch {
		case problem == nil:
			return nil
		case !errors.Is(problem, plainfile.ErrChanged):
			return fmt.Errorf("the metrics could not be written to %s: %w", visible.Name(r.path), failure.WithoutPath(problem))
		}
	}
}

// change updates the values that earlier runs have left in the file with the result of this
// run.
func (r *Run) change(values map[string]float64, now time.Time, code int, err error) {
	values["lost_total"] += 0 // creates the metric in the first run, so that the first loss is an increase
	values["last_exit_code"] = float64(code)
	values["last_wait_seconds"] = cmp.Or(r.Granted, now).Sub(r.began).Seconds()
	if !r.Granted.IsZero() {
		values["last_held_seconds"] = cmp.Or(r.Ended, now).Sub(r.Granted).Seconds()
	}
	ended := "failure"
	switch {
	case r.Granted.IsZero() && failure.NotGranted(err): // the error decides rather than the exit code, since -E may set the code to 0
		ended = "not_granted"
	case code == 0:
		ended = "success"
	}
	values["last_"+ended+"_timestamp_seconds"] = float64(now.UnixMilli()) / 1000
	if errors.Is(err, leasehold.ErrLost) {
		values["lost_total"]++
	}
}

// text returns the file's content.
func (r *Run) text(values map[string]float64) []byte {
	var b []byte
	for _, of := range metrics {
		if value, ok := values[of.name]; ok {
			b = fmt.Appendf(b, "# HELP %s %s\n# TYPE %[1]s %[3]s\n%[1]s{%[4]s} %[5]s\n", metricPrefix+of.name, of.help, of.kind, r.labels, strconv.FormatFloat(value, 'g', -1, 64))
		}
	}
	return b
}
