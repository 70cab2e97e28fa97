package decide

import (
	"testing"
	"time"
)

func TestQueueFrontIsMedianArrivalTime(t *testing.T) {
	at := func(seconds ...int) (times []time.Time) {
		for _, s := range seconds {
			if s == 0 {
				times = append(times, time.Time{})
				continue
			}
			times = append(times, time.Unix(int64(s), 0))
		}
		return times
	}
	for _, tc := range []struct {
		began []time.Time
		want  time.Time
	}{
		{nil, time.Time{}},
		{at(0, 0), time.Time{}},
		{at(7), at(7)[0]},
		{at(4, 3, 2, 1), at(3)[0]},
		{at(1, 2, 3, 4, 5, 6, 7, 8), at(5)[0]},
		{at(0, 4, 0, 3, 2, 1), at(3)[0]}, // a 0 is an unknown time, and is left out
	} {
		if got := Front(tc.began); !got.Equal(tc.want) {
			t.Errorf("%v: %v, want %v", tc.began, got, tc.want)
		}
	}
}

func TestPauseOutsideQueueIsHalfOfExpectedWait(t *testing.T) {
	const (
		ms  = time.Millisecond
		far = time.Hour
	)
	for _, tc := range []struct {
		name string
		o    Outside
		age  time.Duration
		u    float64
		want time.Duration
	}{
		{"half of the way that is left", Outside{Ahead: 4 * time.Second, Moved: time.Second, Seen: time.Second, Last: time.Second}, 0, 0.5, 2 * time.Second},
		{"as slowly as the front moves", Outside{Ahead: time.Second, Moved: 500 * ms, Seen: time.Second, Last: time.Second}, 0, 0.5, time.Second},
		{"a tenth of the wait if it stands", Outside{Waited: 10 * time.Second, Ahead: far, Seen: time.Second, Last: time.Second}, 0, 0.5, time.Second},
		{"or moves an eighth as fast as time", Outside{Waited: 10 * time.Second, Ahead: far, Moved: 125 * ms, Seen: time.Second, Last: time.Second}, 0, 0.5, time.Second},
		{"and not if it moves faster", Outside{Waited: 10 * time.Second, Ahead: 400 * ms, Moved: 160 * ms, Seen: time.Second, Last: time.Minute}, 0, 0.5, 1250 * ms},
		{"and if it moves back", Outside{Waited: 10 * time.Second, Ahead: far, Moved: -1, Seen: time.Second, Last: time.Second}, 0, 0.5, time.Second},
		{"after the first look as fast as time", Outside{Ahead: 400 * ms}, 0, 0.5, 200 * ms},
		{"a quarter of a second at most then", Outside{Ahead: far}, 0, 0.5, 250 * ms},
		{"and as the eighth at least", Outside{Ahead: 100 * ms, RoundTrip: 10 * ms}, 0, 0.5, 160 * ms},
		{"twice the last pause at most", Outside{Ahead: far, Moved: time.Second, Seen: time.Second, Last: time.Second}, 0, 0.5, 2 * time.Second},
		{"as the eighth at least", Outside{Ahead: 0, Moved: time.Second, Seen: time.Second, Last: time.Second, RoundTrip: 10 * ms}, 0, 0.5, 160 * ms},
		{"which an old grant makes longer", Outside{Ahead: 0, Moved: time.Second, Seen: time.Second, Last: time.Second}, 2 * time.Second, 0.5, 4 * time.Second},
		{"a 32nd of the wait at least", Outside{Waited: 32 * time.Second, Ahead: 0, Moved: time.Second, Seen: time.Second, Last: time.Second}, 0, 0.5, time.Second},
		{"who is overdue no less", Outside{Waited: 32 * time.Second, Ahead: -far, Moved: time.Second, Seen: time.Second, Last: time.Second}, 0, 0.5, time.Second},
		{"twelve seconds at most", Outside{Waited: far, Ahead: far, Moved: 1, Seen: far, Last: far}, far, 0.5, 12 * time.Second},
		{"a quarter less by chance", Outside{Waited: far}, far, 0, 9 * time.Second},
		{"or more", Outside{Waited: far}, far, 1, 15 * time.Second},
	} {
		if got := tc.o.pause(tc.age, tc.u); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestWaiterOutsideQueuePausesAccordingToQueueFront(t *testing.T) {
	v := View{Known: true, Dead: time.Hour, PollMin: time.Minute, PollMax: time.Minute, Outside: &Outside{Ahead: time.Second}}
	if move, wait := Next(v, 0, 0.5); move != Look || wait != time.Second/4 {
		t.Errorf("%v after %v", move, wait)
	}
}
