package boltstore_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"testing"

	"github.com/leasehold-go/leasehold/internal/lab"
	"github.com/leasehold-go/leasehold/localdynamo"
	"github.com/leasehold-go/leasehold/localdynamo/boltstore"
)

// crafted is the content of a store whose pages an attacker has changed. The attacker knows
// bbolt's format, and has made the checksums valid again.
type crafted struct {
	t *testing.T
	b []byte
}

var order = binary.NativeEndian

// flagsAt to elementsAt are offsets in a page. metaRoot to metaTx are offsets in a meta page of
// metaSize bytes. The types of pages are branch and leaf.
const (
	flagsAt, countAt, overflowAt, elementsAt = 8, 10, 12, 16
	metaSize, metaRoot, metaFreelist         = 64, 16, 32
	metaPages, metaTx                        = 40, 48
	branch, leaf                             = 1, 2
)

func (c crafted) pageSize() int { return os.Getpagesize() }

func (c crafted) page(id uint64) []byte { return c.b[int(id)*c.pageSize():][:c.pageSize()] }

// meta returns the meta page of the last commit.
func (c crafted) meta() []byte {
	a, b := c.page(0)[elementsAt:][:metaSize], c.page(1)[elementsAt:][:metaSize]
	if order.Uint64(a[metaTx:]) > order.Uint64(b[metaTx:]) {
		return a
	}
	return b
}

// setMeta writes n at the given offset of both meta pages, and makes their checksums valid again.
func (c crafted) setMeta(at int, n uint64) {
	for id := range uint64(2) {
		m := c.page(id)[elementsAt:][:metaSize]
		order.PutUint64(m[at:], n)
		c.sum(m)
	}
}

func (c crafted) sum(m []byte) {
	sum := fnv.New64a()
	_, _ = sum.Write(m[:metaSize-8])
	order.PutUint64(m[metaSize-8:], sum.Sum64())
}

func (c crafted) root() []byte { return c.page(order.Uint64(c.meta()[metaRoot:])) }

func (c crafted) freelist() []byte { return c.page(order.Uint64(c.meta()[metaFreelist:])) }

// top returns the root page of the bucket that contains the store, and the number of that page.
func (c crafted) top() (page []byte, id uint64) {
	p := c.root()
	e := p[elementsAt:]
	value := e[order.Uint32(e[4:])+order.Uint32(e[8:]):]
	id = order.Uint64(value)
	return c.page(id), id
}

// firstLeaf returns the first page that contains items.
func (c crafted) firstLeaf() []byte {
	p, _ := c.top()
	if order.Uint16(p[flagsAt:]) != branch {
		c.t.Fatal("the store has one page of items only")
	}
	return c.page(order.Uint64(p[elementsAt+8:]))
}

// crafts are ways in which an attacker could manipulate a store.
var crafts = map[string]func(c crafted){
	"a branch page that points at itself": func(c crafted) {
		p, id := c.top()
		order.PutUint64(p[elementsAt+8:], id)
	},
	"a branch page that points at one page twice": func(c crafted) {
		p, _ := c.top()
		copy(p[elementsAt+16+8:][:8], p[elementsAt+8:][:8])
	},
	"a branch page that points beyond the end": func(c crafted) {
		p, _ := c.top()
		order.PutUint64(p[elementsAt+8:], 1<<50)
	},
	"a branch page that points at a meta page": func(c crafted) {
		p, _ := c.top()
		order.PutUint64(p[elementsAt+8:], 1)
	},
	"a branch page without elements":        func(c crafted) { p, _ := c.top(); order.PutUint16(p[countAt:], 0) },
	"a branch page with too many elements":  func(c crafted) { p, _ := c.top(); order.PutUint16(p[countAt:], 0xffff) },
	"a page of unknown type":                func(c crafted) { p, _ := c.top(); order.PutUint16(p[flagsAt:], 3) },
	"a page with a wrong number":            func(c crafted) { p, _ := c.top(); order.PutUint64(p, 4711) },
	"a page that is longer than the file":   func(c crafted) { order.PutUint32(c.firstLeaf()[overflowAt:], 1<<31) },
	"an item that begins outside its page":  func(c crafted) { order.PutUint32(c.firstLeaf()[elementsAt+4:], 1<<31) },
	"an item that ends outside its page":    func(c crafted) { order.PutUint32(c.firstLeaf()[elementsAt+12:], 1<<31) },
	"an item marked as a bucket":            func(c crafted) { order.PutUint32(c.firstLeaf()[elementsAt:], 1) },
	"items out of order":                    func(c crafted) { p := c.firstLeaf(); swap(p[elementsAt:], 4) },
	"branches out of order":                 func(c crafted) { p, _ := c.top(); swap(p[elementsAt:], 0) },
	"an empty root page":                    func(c crafted) { order.PutUint16(c.root()[countAt:], 0) },
	"a bucket marked as an item":            func(c crafted) { order.PutUint32(c.root()[elementsAt:], 0) },
	"a bucket that points at page 0":        func(c crafted) { c.setBucket(0) },
	"a bucket that points at the root page": func(c crafted) { c.setBucket(order.Uint64(c.meta()[metaRoot:])) },
	"a root page beyond the end":            func(c crafted) { c.setMeta(metaRoot, 1<<50) },
	"no list of free pages":                 func(c crafted) { c.setMeta(metaFreelist, 1<<64-1) },
	"a list of free pages beyond the end":   func(c crafted) { c.setMeta(metaFreelist, 1<<50) },
	"more free pages than memory": func(c crafted) {
		p := c.freelist()
		order.PutUint16(p[countAt:], 0xffff)
		order.PutUint64(p[16:], 1<<36)
	},
	"a free meta page": func(c crafted) { p := c.freelist(); order.PutUint16(p[countAt:], 1); order.PutUint64(p[16:], 1) },
	"a free page that contains items": func(c crafted) {
		_, id := c.top()
		p := c.freelist()
		order.PutUint16(p[countAt:], 1)
		order.PutUint64(p[16:], id)
	},
	"a page that is listed as free twice":      func(c crafted) { p := c.freelist(); order.PutUint16(p[countAt:], 2); copy(p[24:32], p[16:24]) },
	"more pages than the file has":             func(c crafted) { c.setMeta(metaPages, 1<<40) },
	"the greatest possible transaction number": func(c crafted) { c.setMeta(metaTx, 1<<64-1) },
	"a page size of zero": func(c crafted) {
		for id := range uint64(2) {
			m := c.page(id)[elementsAt:][:metaSize]
			order.PutUint32(m[8:], 0)
			c.sum(m)
		}
	},
	"a page size of a gigabyte": func(c crafted) {
		for id := range uint64(2) {
			m := c.page(id)[elementsAt:][:metaSize]
			order.PutUint32(m[8:], 1<<30)
			c.sum(m)
		}
	},
}

// setBucket makes the page with this number the root page of the bucket that contains the store.
func (c crafted) setBucket(id uint64) {
	e := c.root()[elementsAt:]
	order.PutUint64(e[order.Uint32(e[4:])+order.Uint32(e[8:]):], id)
}

// swap exchanges the first two elements of a page. At offset placeAt, each element contains a
// position that is relative to the element's own address. So swap adjusts both positions.
func swap(elements []byte, placeAt int) {
	const size = 16
	first := bytes.Clone(elements[:size])
	copy(elements, elements[size:2*size])
	copy(elements[size:], first)
	a, b := elements[placeAt:], elements[size+placeAt:]
	order.PutUint32(a, order.Uint32(a)+size)
	order.PutUint32(b, order.Uint32(b)-size)
}

func TestMaliciousPagesInStoreFileAreReportedAsDamage(t *testing.T) {
	whole := filled(t)
	lab.Variants(t, crafts, func(t *testing.T, craft func(crafted)) {
		c := crafted{t, bytes.Clone(whole)}
		craft(c)
		if bytes.Equal(c.b, whole) {
			t.Fatal("nothing was changed")
		}
		path := filepath.Join(t.TempDir(), "locks.db")
		lab.OK(t, os.WriteFile(path, c.b, 0o600))
		lab.WantText(t, "the file", lab.ErrorOf(found(t, path)), path+" is damaged: ")
		checkUnchanged(t, path, c.b)
		checkFree(t, path)
	})
}

// Other users of the group can change a group-writable file at any time, even while a
// process has it open.
func TestTransactionDetectsFileDamagedAfterOpen(t *testing.T) {
	whole := filled(t)
	path := filepath.Join(t.TempDir(), "locks.db")
	lab.OK(t, os.WriteFile(path, whole, 0o600))
	lab.OK(t, os.Chmod(path, 0o660))
	store := lab.Must(boltstore.Open(path))(t)
	defer store.Close()
	c := crafted{t, whole}
	crafts["a branch page that points at itself"](c)
	lab.OK(t, os.WriteFile(path, c.b, 0o600))
	none := func(localdynamo.Tx) error { t.Error("the function was called"); return nil }
	for _, err := range []error{store.View(none), store.Update(none)} {
		lab.WantText(t, "the store", err, path+" is damaged: ")
	}
}

// BenchmarkViewOfTenThousandLocks measures a read transaction in two kinds of file. Only
// the owner can write to the first kind. Other users can write to the second kind, so each
// transaction checks the structure of the file.
func BenchmarkViewOfTenThousandLocks(b *testing.B) {
	for name, mode := range map[string]os.FileMode{"own": 0o600, "shared": 0o660} {
		b.Run(name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "locks.db")
			store := lab.Must(boltstore.Open(path))(b)
			for from := range 10 { // makes several commits, so that the file has free pages
				lab.OK(b, store.Update(func(tx localdynamo.Tx) error {
					for n := range 1000 {
						if err := tx.Put(fmt.Appendf(nil, "lock-%07d", (from*1000+n)*7919%10_000), bytes.Repeat([]byte("x"), 300)); err != nil {
							return err
						}
					}
					return nil
				}))
			}
			lab.OK(b, os.Chmod(path, mode))
			for b.Loop() {
				lab.OK(b, store.View(func(tx localdynamo.Tx) error { tx.Get([]byte("lock-0004711")); return nil }))
			}
		})
	}
}
