// Package textfile is the file of run --metrics, for the node exporter's textfile
// collector. It holds the metrics of the last run, and what earlier runs have left there:
// when one succeeded, and how many locks were lost. A file of anything else is refused
// before the run begins.
package textfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/cli/store"
	"github.com/leasehold-go/leasehold/internal/plainfile"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// Run is what is known of a run. Without --metrics it is nil, and notes nothing.
type Run struct {
	path   string // as the user named it
	file   string // path without symbolic links
	labels []*dto.LabelPair
	began  time.Time

	granted time.Time // zero: not yet
	ended   time.Time // when CMD had ended, and the key was released; zero: not yet
}

// The metrics, in the order of the file.
var metrics = []struct {
	name, help string
	kind       dto.MetricType
}{
	{metricSuccess, "When a run last ended with exit code 0.", dto.MetricType_GAUGE},
	{metricFailure, "When a run last ended with another exit code, except if the key was not granted.", dto.MetricType_GAUGE},
	{metricNotGranted, "When a run last ended because the key was not granted.", dto.MetricType_GAUGE},
	{metricExitCode, "Exit code of the last run.", dto.MetricType_GAUGE},
	{metricWait, "How long the last run waited for the key.", dto.MetricType_GAUGE},
	{metricHeld, "How long the key was held by the last run that was granted it.", dto.MetricType_GAUGE},
	{metricLost, "Runs that lost the lock.", dto.MetricType_COUNTER},
}

const (
	metricPrefix     = "leasehold_run_"
	metricSuccess    = metricPrefix + "last_success_timestamp_seconds"
	metricFailure    = metricPrefix + "last_failure_timestamp_seconds"
	metricNotGranted = metricPrefix + "last_not_granted_timestamp_seconds"
	metricExitCode   = metricPrefix + "last_exit_code"
	metricWait       = metricPrefix + "last_wait_seconds"
	metricHeld       = metricPrefix + "last_held_seconds"
	metricLost       = metricPrefix + "lost_total"
)

// Open prepares to write metrics to path when a run ends. It refuses a path that cannot
// become such a file.
func Open(path string, now time.Time, p store.Place, keys []string, sortKey string) (*Run, error) {
	if filepath.Ext(path) != ".prom" {
		return nil, misuse.Errorf("--metrics %s: the node exporter reads only files whose names end in .prom", visible.Name(path))
	}
	file, err := plainfile.Named(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, misuse.Errorf("--metrics %s: there is no such directory: create it first", visible.Name(path))
	case err != nil:
		return nil, misuse.Errorf("--metrics %s: %v", visible.Name(path), failure.WithoutPath(err))
	}
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		return nil, misuse.Errorf("--metrics %s: this is not a regular file", visible.Name(path))
	}
	r := &Run{path: path, file: file, began: now}
	r.label("key", strings.Join(keys, ","))
	r.label("sort_key", sortKey)
	r.label("file", p.File)
	if p.File == "" {
		r.label("table", p.Table)
	}
	if _, err := r.before(); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Run) label(name, value string) {
	if value != "" {
		r.labels = append(r.labels, &dto.LabelPair{Name: &name, Value: &value})
	}
}

// Granted notes when the key was granted.
func (r *Run) Granted(at time.Time) {
	if r != nil {
		r.granted = at
	}
}

// Ended notes when CMD had ended, and the key was released.
func (r *Run) Ended(at time.Time) {
	if r != nil {
		r.ended = at
	}
}

// before returns what earlier runs have left in the file. An error means that the
// file is not theirs.
func (r *Run) before() (map[string]float64, error) {
	b, err := plainfile.ReadNamed(r.file)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]float64{}, nil
	}
	if err != nil {
		return nil, misuse.Errorf("--metrics %s: %v", visible.Name(r.path), failure.WithoutPath(err))
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(b))
	if err != nil {
		return nil, misuse.Errorf("--metrics %s: the file holds no metrics, and its content would be lost: name another file", visible.Name(r.path))
	}
	values := map[string]float64{}
	for name, family := range families {
		if !strings.HasPrefix(name, metricPrefix) {
			return nil, misuse.Errorf("--metrics %s: the file holds other metrics, which would be lost: name another file", visible.Name(r.path))
		}
		for _, metric := range family.Metric {
			if !r.isOurs(metric) {
				return nil, misuse.Errorf("--metrics %s: the file holds the metrics of another key or table: use one file for each, or remove this one", visible.Name(r.path))
			}
			values[name] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	return values, nil
}

// isOurs reports whether a metric has these labels.
func (r *Run) isOurs(metric *dto.Metric) bool {
	return slices.EqualFunc(metric.Label, r.labels, func(a, b *dto.LabelPair) bool {
		return a.GetName() == b.GetName() && a.GetValue() == b.GetValue()
	})
}

// Write writes the metrics of the run, which has ended so. Its error is a warning: CMD has
// run.
func (r *Run) Write(now time.Time, code int, err error) error {
	if r == nil {
		return nil
	}
	if problem := r.write(now, code, err); problem != nil {
		return fmt.Errorf("the metrics could not be written to %s: %w", visible.Name(r.path), failure.WithoutPath(problem))
	}
	return nil
}

func (r *Run) write(now time.Time, code int, err error) error {
	unlock, problem := plainfile.Lock(r.file + ".lock") // against a run on the same key, such as with -p
	if problem != nil {
		return problem
	}
	defer unlock()
	values, problem := r.before()
	if problem != nil {
		return problem
	}
	r.change(values, now, code, err)
	b, problem := r.text(values)
	if problem != nil {
		return problem
	}
	return plainfile.Replace(r.file, b, 0o644) // for the node exporter, which has a user of its own
}

// change brings the values of earlier runs up to date.
func (r *Run) change(values map[string]float64, now time.Time, code int, err error) {
	values[metricLost] += 0 // from the first run on, so that the first loss is an increase
	values[metricExitCode] = float64(code)
	values[metricWait] = cmp.Or(r.granted, now).Sub(r.began).Seconds()
	if !r.granted.IsZero() {
		values[metricHeld] = cmp.Or(r.ended, now).Sub(r.granted).Seconds()
	}
	at := float64(now.UnixMilli()) / 1000
	switch {
	case r.granted.IsZero() && failure.NotGranted(err): // whatever the code: -E may say 0
		values[metricNotGranted] = at
	case code == 0:
		values[metricSuccess] = at
	default:
		values[metricFailure] = at
	}
	if errors.Is(err, leasehold.ErrLost) {
		values[metricLost]++
	}
}

// text returns the file's content.
func (r *Run) text(values map[string]float64) ([]byte, error) {
	var b bytes.Buffer
	encoder := expfmt.NewEncoder(&b, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, of := range metrics {
		value, ok := values[of.name]
		if !ok {
			continue
		}
		metric := &dto.Metric{Label: r.labels}
		if of.kind == dto.MetricType_COUNTER {
			metric.Counter = &dto.Counter{Value: &value}
		} else {
			metric.Gauge = &dto.Gauge{Value: &value}
		}
		if err := encoder.Encode(&dto.MetricFamily{Name: &of.name, Help: &of.help, Type: &of.kind, Metric: []*dto.Metric{metric}}); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}
