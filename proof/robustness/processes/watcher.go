//go:build linux

package processes

import (
	"bytes"
	"os"
	"sync"
	"time"
)

// watcher reads a journal while workers append to it.
type watcher struct {
	file *os.File
	done chan struct{}
	over sync.WaitGroup

	mu      sync.Mutex
	rest    []byte // line at the end of the journal that is not complete yet
	events  []Event
	holding map[string]string // by worker: the key that the worker believes it holds
	grown   chan struct{}     // closed when further events have been read
}

func watch(path string) (*watcher, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	w := &watcher{file: f, done: make(chan struct{}), holding: map[string]string{}, grown: make(chan struct{})}
	w.over.Go(w.run)
	return w, nil
}

func (w *watcher) run() {
	again := time.NewTicker(3 * time.Millisecond)
	defer again.Stop()
	buf := make([]byte, 1<<16)
	for {
		select {
		case <-w.done:
			return
		case <-again.C:
		}
		for {
			n, _ := w.file.Read(buf) // n is 0 at the end of the file
			if n == 0 {
				break
			}
			w.take(buf[:n])
		}
	}
}

// take parses the bytes that were appended to the journal. If the last line cannot be parsed, its
// writer may not have written all of it yet. So take keeps that line for the next call.
func (w *watcher) take(appended []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := append(w.rest, appended...)
	cut := len(text)
	if last := bytes.LastIndexByte(text, '\n'); last >= 0 {
		if whole, _ := parse(text[last:]); len(whole) == 0 {
			cut = last
		}
	}
	events, _ := parse(text[:cut])
	w.rest = bytes.Clone(text[cut:])
	for _, e := range events {
		switch e.Kind {
		case Granted:
			w.holding[e.Who] = e.Key
		case Over, Lost, Killed, Ended:
			delete(w.holding, e.Who)
		}
	}
	if len(events) > 0 {
		w.events = append(w.events, events...)
		close(w.grown)
		w.grown = make(chan struct{})
	}
}

// holders returns a map from workers to keys: the key that each worker believes it holds.
func (w *watcher) holders() map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make(map[string]string, len(w.holding))
	for who, key := range w.holding {
		all[who] = key
	}
	return all
}

// await waits until the journal contains an event for which match returns true, and returns the
// first such event. It returns false after the time limit.
func (w *watcher) await(limit time.Duration, match func(Event) bool) (Event, bool) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for next := 0; ; {
		w.mu.Lock()
		events, grown := w.events, w.grown
		w.mu.Unlock()
		for ; next < len(events); next++ {
			if match(events[next]) {
				return events[next], true
			}
		}
		select {
		case <-grown:
		case <-timer.C:
			return Event{}, false
		}
	}
}

func (w *watcher) close() {
	close(w.done)
	w.over.Wait()
	_ = w.file.Close()
}
