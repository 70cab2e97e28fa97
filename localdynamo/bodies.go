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
	smallBody     = 64 << 10         // maximum bytes of a body that never waits for other bodies; a lock's body has hundreds of bytes
	maxLarge      = 64 << 20         // maximum bytes of larger bodies in flight at once
	largePatience = 30 * time.Second // longest wait of a large body until there is room for it
	maxDrained    = 4 * maxBody      // maximum bytes of a body that are read after its request was refused
	drainPatience = 5 * time.Second  // longest time for reading the body of a refused request
)

// bodies reads the bodies of requests from the network, and bounds how much of them is in
// memory. While a client sends a large body, the body occupies room of the size that the
// client has announced. So large bodies wait for each other. Small bodies do not wait: a
// client that sends a large body slowly must not keep other clients from their locks.
//
// Decoding takes several times as much memory as the body, so large bodies are answered one
// at a time. A request that has its turn to answer never waits for room, so the two waits
// cannot deadlock.
type bodies struct {
	room *semaphore.Weighted // room for large bodies, in bytes
	turn *semaphore.Weighted // turn to answer a large body
}

func newBodies(most int64) *bodies {
	return &bodies{room: semaphore.NewWeighted(most), turn: semaphore.NewWeighted(1)}
}

// read reads the body of r. The caller must call done when it has answered the request.
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
	if err != nil || len(start) <= smallBody { // the body is small: it was sent in chunks or cut off
		return string(start), done, err
	}
	return b.readLarge(r, start)
}

// readLarge reads the rest of a body that begins with start.
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

// drain prepares the refusal of a body that is too large. Some clients send the whole body
// before they read the answer. If the connection were closed with bytes unread, it would be
// reset. Such a client would then not see why its request was refused. So the caller must
// call read after it has written the refusal: read reads and discards the rest of the body.
// It reads nothing if no deadline can be set.
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
