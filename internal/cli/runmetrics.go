package cli

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/leasehold-go/leasehold"
	"github.com/leasehold-go/leasehold/internal/cli/failure"
	"github.com/leasehold-go/leasehold/internal/cli/misuse"
	"github.com/leasehold-go/leasehold/internal/plainfile"
	"github.com/leasehold-go/leasehold/internal/visible"
)

// runMetrics are the metrics that run --metrics leaves in a file for the node
// exporter's textfile collector. They are those of the last run, and what earlier
// runs have left in the file: when one succeeded, and how many locks were lost.
type runMetrics struct {
	path   string // as the user named it
	file   string // path without symbolic links
	labels []*dto.LabelPair
	began  time.Time

	granted time.Time // zero: not yet
	ended   time.Time // when CMD had ended, and the key was released; zero: not yet
}

// The metrics, in the order of the file.
var runMetricNames = []struct {
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

// startMetrics prepares to write metrics to path when the command ends. It
// refuses a path that cannot become such a file.
func (a *app) startMetrics(path string, keys []string, sortKey string) error {
	if path == "" {
		return nil
	}
	if filepath.Ext(path) != ".prom" {
		return misuse.Errorf("--metrics %s: the node exporter reads only files whose names end in .prom", visible.Name(path))
	}
	if info, err := os.Stat(dirOf(path)); err != nil || !info.IsDir() {
		return misuse.Errorf("--metrics %s: there is no such directory: create it first", visible.Name(path))
	}
	file, err := plainfile.Named(path)
	if err != nil {
		return misuse.Errorf("--metrics %s: %v", visible.Name(path), failure.WithoutPath(err))
	}
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		return misuse.Errorf("--metrics %s: this is not a regular file", visible.Name(path))
	}
	p, err := a.flags.Place("")
	if err != nil {
		return err
	}
	m := &runMetrics{path: path, file: file, began: a.Now()}
	m.label("key", strings.Join(keys, ","))
	if sortKey != "" {
		m.label("sort_key", sortKey)
	}
	if p.File != "" {
		m.label("file", p.File)
	} else {
		m.label("table", p.Table)
	}
	if _, err := m.before(); err != nil {
		return err
	}
	a.metrics = m
	return nil
}

func (m *runMetrics) label(name, value string) {
	m.labels = append(m.labels, &dto.LabelPair{Name: &name, Value: &value})
}

// noteGranted and noteEnded do nothing without --metrics.
func (m *runMetrics) noteGranted(at time.Time) {
	if m != nil {
		m.granted = at
	}
}

func (m *runMetrics) noteEnded(at time.Time) {
	if m != nil {
		m.ended = at
	}
}

// before returns what earlier runs have left in the file. An error means that the
// file is not theirs.
func (m *runMetrics) before() (map[string]float64, error) {
	b, err := plainfile.ReadNamed(m.file)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]float64{}, nil
	}
	if err != nil {
		return nil, misuse.Errorf("--metrics %s: %v", visible.Name(m.path), failure.WithoutPath(err))
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(b))
	if err != nil {
		return nil, misuse.Errorf("--metrics %s: the file holds no metrics, and its content would be lost: name another file", visible.Name(m.path))
	}
	values := map[string]float64{}
	for name, family := range families {
		if !strings.HasPrefix(name, metricPrefix) {
			return nil, misuse.Errorf("--metrics %s: the file holds other metrics, which would be lost: name another file", visible.Name(m.path))
		}
		for _, metric := range family.Metric {
			if !m.isOurs(metric) {
				return nil, misuse.Errorf("--metrics %s: the file holds the metrics of another key or table: use one file for each, or remove this one", visible.Name(m.path))
			}
			values[name] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	return values, nil
}

// isOurs reports whether a metric has these labels.
func (m *runMetrics) isOurs(metric *dto.Metric) bool {
	got := map[string]string{}
	for _, l := range metric.Label {
		got[l.GetName()] = l.GetValue()
	}
	for _, l := range m.labels {
		if got[l.GetName()] != l.GetValue() {
			return false
		}
	}
	return len(got) == len(m.labels)
}

// endMetrics writes the metrics of a run that has ended. A failure is a warning:
// CMD has run.
func (a *app) endMetrics(code int, err error) {
	m := a.metrics
	if m == nil {
		return
	}
	if problem := m.write(a.Now(), code, err); problem != nil {
		a.say.Note("the metrics could not be written to %s: %v", visible.Name(m.path), failure.WithoutPath(problem))
	}
}

func (m *runMetrics) write(now time.Time, code int, err error) error {
	unlock, problem := plainfile.Lock(m.file + ".lock") // against a run on the same key, such as with -p
	if problem != nil {
		return problem
	}
	defer unlock()
	values, problem := m.before()
	if problem != nil {
		return problem
	}
	m.change(values, now, code, err)
	b, problem := m.text(values)
	if problem != nil {
		return problem
	}
	return writeFile(m.file, b, 0o644) // for the node exporter, which has a user of its own
}

// change brings the values of earlier runs up to date.
func (m *runMetrics) change(values map[string]float64, now time.Time, code int, err error) {
	values[metricLost] += 0 // from the first run on, so that the first loss is an increase
	values[metricExitCode] = float64(code)
	end := m.granted
	if end.IsZero() {
		end = now
	}
	values[metricWait] = end.Sub(m.began).Seconds()
	if !m.granted.IsZero() {
		end := m.ended
		if end.IsZero() {
			end = now
		}
		values[metricHeld] = end.Sub(m.granted).Seconds()
	}
	at := float64(now.UnixMilli()) / 1000
	switch {
	case m.granted.IsZero() && failure.NotGranted(err): // whatever the code: -E may say 0
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
func (m *runMetrics) text(values map[string]float64) ([]byte, error) {
	var b bytes.Buffer
	encoder := expfmt.NewEncoder(&b, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, of := range runMetricNames {
		value, ok := values[of.name]
		if !ok {
			continue
		}
		metric := &dto.Metric{Label: m.labels}
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

// dirOf returns the directory of a file. Unlike filepath.Dir it does not clean
// the path: in a/../b, a may be a symbolic link, which only the kernel resolves.
func dirOf(path string) string {
	dir, _ := filepath.Split(path)
	return cmp.Or(strings.TrimSuffix(dir, string(filepath.Separator)), dir, ".")
}
