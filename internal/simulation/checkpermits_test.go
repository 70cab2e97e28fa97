package simulation

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// permitLog is what the table has said of the semaphore, and when. checker.mu
// guards it.
type permitLog struct {
	resizes []resize
	grants  map[string]time.Time // by id: first installed
}

// resize is n from then on.
type resize struct {
	at time.Time
	n  int
}

func (l *permitLog) installed(grant string) {
	if l.grants == nil {
		l.grants = map[string]time.Time{}
	}
	if l.grants[grant].IsZero() {
		l.grants[grant] = time.Now()
	}
}

// mostBetween is the greatest n that was in force at some time of those.
func (l *permitLog) mostBetween(from, to time.Time) int {
	most := 0
	for i, r := range l.resizes {
		ends := i+1 < len(l.resizes) && l.resizes[i+1].at.Before(from)
		if !r.at.After(to) && !ends {
			most = max(most, r.n)
		}
	}
	return most
}

// resized enters the new state of the semaphore's row.
func (c *checker) resized(r *request, now *state, item attributeMap) {
	n := int(item.number("permits"))
	c.applies(r, "semaphore", fmt.Sprintf("%d permits, at most %d ever", n, item.number("most")))
	c.permits.resizes = append(c.permits.resizes, resize{time.Now(), n})
	if now.version == "" || now.owner == "" || now.lease <= 0 {
		c.note("10: the row of a semaphore lacks an attribute of the Java client: %v", item)
	}
	if c.versions[now.version] {
		c.note("2: version %s of a semaphore came back", now.version)
	}
	c.versions[now.version] = true
	for _, r := range c.permits.resizes {
		if int64(r.n) > item.number("most") {
			c.note("14: there were %d permits, and the row says %d at most", r.n, item.number("most"))
		}
	}
}

// checkPermits holds the beliefs against what the table said of the semaphore:
// whoever believes to have a permit was granted one of those that there were
// when it was granted, or was told that it had it. As permits of one number
// exclude each other, there are never more than there were since the oldest of
// them was granted.
func (c *checker) checkPermits() {
	c.mu.Lock()
	defer c.mu.Unlock()
	var permits []*belief
	for _, b := range c.beliefs {
		if strings.HasPrefix(b.lock.Key().Partition, "s/") {
			permits = append(permits, b)
		}
	}
	for _, b := range permits {
		granted := c.permits.grants[b.grant]
		if most := c.permits.mostBetween(granted, b.began); permitOf(b) >= most {
			c.note("14: process %d believes in permit %d, granted at %v and told at %v, of %d", b.by.id, permitOf(b),
				granted.Sub(c.began), b.began.Sub(c.began), most)
		}
		oldest, n := granted, 0
		for _, o := range permits {
			if !o.began.After(b.began) && o.end.After(b.began) {
				n++
				if at := c.permits.grants[o.grant]; at.Before(oldest) {
					oldest = at
				}
			}
		}
		if most := c.permits.mostBetween(oldest, b.began); n > most {
			c.note("14: %d permits were believed in at %v, of %d", n, b.began.Sub(c.began), most)
		}
	}
}

func permitOf(b *belief) int {
	_, number, _ := strings.Cut(b.lock.Key().Partition, "/")
	i, err := strconv.Atoi(number)
	if err != nil {
		return mostPermits
	}
	return i
}
