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
	// A body of at most this many bytes never waits for other bodies. The requests of a lock
	// have hundreds of bytes.
	smallBody     = 64 << 10
	maxLarge      = 64 << 20         // maximum total size, in bytes, of the bodies in memory that are larger than smallBody
	largePatience = 30 * time.Second // longest time that a large body waits for room in memory
	maxDrained    = 4 * maxBody      // maximum number of bytes that are read from the body of a refused request
	drainPatience = 5 * time.Second  // longest time for reading the body of a refused request
)

// bodies reads the bodies of requests from the network, and limits their memory. A large body
// reserves its Content-Length (maxBody bytes if unknown) until the request is answered. The request
// waits until enough bytes are free. Requests with small bodies, such as those of a lock, never
// wait.
//
// A decoded request takes several times as much memory as its body. So requests with large bodies
// are executed one at a time. Each waits for memory (room) first, then for execution (turn), so
// that two cannot block each other.
type bodies struct {
	room *semaphore.Weighted // counts the bytes that large bodies may still reserve
	turn *semaphore.Weighted // held while a request with a large body is executed
}

func newBodies(most int64) *bodies {
	return &bodies{room: semaphore.NewWeighted(most), turn: semaphore.NewWeighted(1)}
}

// read returns the body of r. The caller must call the function done after it has sent the
// reply to the request.
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
	if err != nil || len(start) <= smallBody { // a small body without a Content-Length, or a body that the client cut off
		return string(start), done, err
	}
	return b.readLarge(r, start)
}

// readLarge reads the rest of a body and returns the whole body. The caller has already read
// "start", the beginning of the body.
func (b *bodies) readLarge(r *http.Request, start []byte) (string, func(), error) {
	size := r.ContentLength
	if size < 0 {
		size = maxBody // the client sends the body in chunks, so its size is unknown
	}
	ctx, cancel := context.WithTimeout(r.Context(), largePatience)
	defer cancel()
	if b.room.Acquire(ctx, size) != nil {
		return "", func() {}, errNoRoom
	}
	leave := func() { b.room.Release(size) }
	var whole strings.Builder
	whole.Grow(int(size) + 1)
	_, _ = whole.Write(start) // the error is ignored, because a strings.Builder never fails to write
	// The limit is one byte more than size. So a body that is longer than size is not mistaken
	// for a complete body.
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

// drain prepares the refusal of a request whose body is too large. The caller writes the refusal,
// and then calls the returned function (read), which discards at most maxDrained bytes of the body.
// Otherwise the server would reset the connection of a client that is still sending, and the client
// would lose the reply. If the connection has no read deadlines, read discards nothing, because it
// could wait forever.
func drain(w http.ResponseWriter, r *http.Request) (read func()) {
	control := http.NewResponseController(w)
	_ = control.EnableFullDuplex() // the error is ignored: if this call fails, setting the deadline fails too
	w.Header().Set("Connection", "close")
	return func() {
		_ = control.Flush()
		if control.SetReadDeadline(time.Now().Add(drainPatience)) == nil {
			_, _ = io.CopyN(io.Discard, r.Body, maxDrained)
		}
	}
}
