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
	smallBody     = 64 << 10         // bytes of a body that never waits for others: a lock's has hundreds
	maxLarge      = 64 << 20         // bytes of larger bodies in flight at once
	largePatience = 30 * time.Second // how long a large body waits for them
	maxDrained    = 4 * maxBody      // bytes of a body that are read after its request was refused
	drainPatience = 5 * time.Second  // how long that may take
)

// bodies reads the bodies of requests of the network, and bounds how much of them is in
// memory. A client occupies the size that it has announced for as long as it sends, so
// large bodies wait for each other. Small ones do not wait: a client that sends a large
// body slowly must not keep others from their locks.
//
// Decoding takes several times the body, so large bodies are answered one at a time. A
// request with the turn to answer never waits for room, so the two waits cannot deadlock.
type bodies struct {
	room *semaphore.Weighted // bytes
	turn *semaphore.Weighted // the turn to answer
}

func newBodies(most int64) *bodies {
	return &bodies{room: semaphore.NewWeighted(most), turn: semaphore.NewWeighted(1)}
}

// read reads the body of r. The caller calls done when it has answered the request.
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
	if err != nil || len(start) <= smallBody { // in chunks, or cut off
		return string(start), done, err
	}
	return b.readLarge(r, start)
}

// readLarge reads the rest of a body that begins with start.
func (b *bodies) readLarge(r *http.Request, start []byte) (string, func(), error) {
	size := r.ContentLength
	if size < 0 {
		size = maxBody // in chunks, of unknown size
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
	// One byte more, so that a longer body is not mistaken for a complete one.
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

// drain prepares the refusal of a body that is too large for a client that sends all of it
// before it reads. Call read after the refusal was written: it reads and forgets the rest.
// To close the connection with bytes unread would reset it, and the client would not see
// why its request was refused. Nothing is read where no deadline can be set.
func drain(w http.ResponseWriter, r *http.Request) (read func()) {
	control := http.NewResponseController(w)
	_ = control.EnableFullDuplex() // if it fails, so does setting the deadline
	w.Header().Set("Connection", "close")
	return func() {
		_ = control.Flush()
		if control.SetReadDeadline(time.Now().Add(drainPatience)) == nil {
			_, _ = io.CopyN(io.Discard, r.Body, maxDrained)
		}
	}
}
