package localdynamo

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	smallBody     = 64 << 10         // maximum bytes of a body that never waits for other bodies; the requests of a lock have hundreds of bytes
	maxLarge      = 64 << 20         // maximum bytes of all larger bodies in memory at once
	largePatience = 30 * time.Second // longest wait of a large body for room in memory
	maxDrained    = 4 * maxBody      // maximum bytes that are read of the body of a refused request
	drainPatience = 5 * time.Second  // longest time for reading the body of a refused request
)

// bodies reads the bodies of requests from the network, and limits how much memory they
// take. A large body takes up the number of bytes that its client has announced, until the
// request is answered. So large bodies wait for each other. Small bodies do not wait,
// because a client that sends a large body slowly must not keep other clients from their
// locks.
//
// A decoded request takes several times as much memory as its body, so requests with large
// bodies are executed one at a time. A request waits first for room and then for that turn,
// never in the other order. So the two waits cannot deadlock.
type bodies struct {
	room *semaphore.Weighted // bytes available for large bodies
	turn *semaphore.Weighted // held while a request with a large body is executed
}

func newBodies(most int64) *bodies {
	return &bodies{room: semaphore.NewWeighted(most), turn: semaphore.NewWeighted(1)}
}

// read returns the body of r. The caller must call done after it has answered the request.
func (b *bodies) read(r *http.Request) (body string, done func(), err error) {
	done = func() {}
	if r.ContentLength > maxBody {
		return "", done, errTooLarge
	}
	if r.Body == nil || 0 <= r.ContentLength && r.ContentLength <= smallBody {
		body, err = readBody(r)
		return body, done, err
	}
	start, err := io.ReadAll(io.LimitReader(r.Body, smallBody+1))
	if err != nil || len(start) <= smallBody { // a small body without a Content-Length, or a body that was cut off
		return string(start), done, err
	}
	return b.readLarge(r, start)
}

// readLarge reads the rest of a body that begins with start, and returns the whole body.
func (b *bodies) readLarge(r *http.Request, start []byte) (string, func(), error) {
	size := r.ContentLength
	if size < 0 {
		size = maxBody // the body is sent in chunks, so its size is unknown
	}
	ctx, cancel := context.WithTimeout(r.Context(), largePatience)
	defer cancel()
	if b.room.Acquire(ctx, size) != nil {
		return "", func() {}, errNoRoom
	}
	leave := func() { b.room.Release(size) }
	var whole strings.Builder
	whole.Grow(int(size) + 1)
	_, _ = whole.Write(start) // never fails
	// The limit is one byte more than the size, so that a longer body is not mistaken for a
	// complete one.
	n, err := io.Copy(&whole, io.LimitReader(r.Body, size+1-int64(len(start))))
	if err == nil && int64(len(start))+n < r.ContentLength {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		leave()
		return "", func() {}, err
	}
	if b.turn.Acquire(r.Context(), 1) != nil {
		leave()
		return "", func() {}, errNoRoom
	}
	return whole.String(), func() { b.turn.Release(1); leave() }, nil
}

// drain prepares the refusal of a body that is too large. The caller writes the refusal and
// then calls read, which reads and discards the rest of the body. Some clients send the
// whole body before they read the answer. If the server closed the connection earlier, TCP
// would reset it, and such a client would lose the answer. read does nothing if no deadline
// can be set.
func drain(w http.ResponseWriter, r *http.Request) (read func()) {
	control := http.NewResponseController(w)
	_ = control.EnableFullDuplex() // if this fails, setting the deadline fails too
	w.Header().Set("Connection", "close")
	return func() {
		_ = control.Flush()
		if control.SetReadDeadline(time.Now().Add(drainPatience)) == nil {
			_, _ = io.CopyN(io.Discard, r.Body, maxDrained)
		}
	}
}
