package localdynamo

import (
	"strings"
	"sync"
)

// maxCached is the maximum number of results that a cache keeps.
const maxCached = 1000

// cache keeps the results of parse. So an expression that a program sends in a loop is
// parsed only once. Errors are not kept. A cache is safe for concurrent use.
type cache[T any] struct {
	parse func(string) (T, error)

	mu     sync.RWMutex // guards parsed
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
	// Without the clone, the cache would keep the whole body of the request.
	source = strings.Clone(source)
	result, err := c.parse(source)
	if err != nil {
		return result, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.parsed) >= maxCached {
		// This is rare: only a program that writes values into its expressions gets here.
		// For such a program no other strategy would be better.
		clear(c.parsed)
	}
	c.parsed[source] = result
	return result, nil
}
