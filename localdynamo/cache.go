package localdynamo

import (
	"strings"
	"sync"
)

// maxCached is the maximum number of results that a cache keeps.
const maxCached = 1000

// cache keeps the results of parse, so that an expression is parsed only once if a program sends
// it in a loop. A cache does not keep errors. It is safe for concurrent use.
type cache[T any] struct {
	parse func(string) (T, error)

	mu     sync.RWMutex // guards the field "parsed"
	parsed map[string]T
}

func newCache[T any](parse func(string) (T, error)) *cache[T] {
	return &cache[T]{parse: parse, parsed: map[string]T{}}
}

func (c *cache[T]) get(source string) (T, error) {
	c.mu.RLock()
	result, ok := c.parsed[source]
	c.mu.RUnlock()
	if ok {
		return result, nil
	}
	// source is a substring of the request's body. It is cloned, so that the cache does not
	// keep the body in memory.
	source = strings.Clone(source)
	result, err := c.parse(source)
	if err != nil {
		return result, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.parsed) >= maxCached {
		// Only a program that puts values into the text of its expressions sends more than
		// maxCached different expressions. It rarely sends the same one again, so dropping all
		// results costs little.
		clear(c.parsed)
	}
	c.parsed[source] = result
	return result, nil
}
