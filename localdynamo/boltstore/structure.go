package boltstore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
)

// The code below checks all pages of a file before bbolt reads them, because bbolt does not check
// them. A page that points at itself would overflow the stack, which ends the process even with
// recover. A wrong count may request more memory than the machine has. bbolt does not find an item
// that is out of order, so a held lock may look free. Even bbolt's own check (Tx.Check) trusts the
// pages.
//
// The checks keep a damaged file from harming the processes that open it. They do not protect
// against a user who may write to the file, and so can change it while it is read.

// These constants describe the layout of a bbolt file, as bbolt's package internal/common
// declares it. Numbers are in the byte order of the machine. A position is relative to the
// element that contains it.
const (
	metaMagic, metaVersion     = 0xED0CDAED, 2
	noFreelist                 = 1<<64 - 1
	branchPage, leafPage       = 0x01, 0x02
	freelistPage               = 0x10
	headerSize, elementSize    = 16, 16
	metaSize, bucketHeaderSize = 64, 16
	// If the count of a free list has this value, the list is too long for the field "count". The
	// first element of the list is then the number of pages in the list.
	manyFree = 0xffff
)

// These limits are far above the needs of any store of locks.
const (
	maxFile  = 1 << 40 // maximum number of bytes in the file
	maxDepth = 32      // maximum number of pages from the root to an item
	// An item of 400 KB takes up to 28 MB in the file: DynamoDB counts two bytes for 11e-130, and the
	// file contains it with all its zeros.
	maxValue = 32 << 20
	// Largest transaction number that is accepted. The next number must not overflow.
	maxTx = 1 << 62
)

// damageError says how the structure of a file is damaged.
type damageError string

func (e damageError) Error() string { return string(e) }

func damagef(format string, args ...any) error { return damageError(fmt.Sprintf(format, args...)) }

// meta is a valid meta page. A file has two meta pages, and commits write to them alternately.
type meta struct {
	pageSize, root, freelist, pages, tx uint64
}

// metaAt decodes the meta page at the given position. It returns false if the page is not
// valid.
func metaAt(b []byte, at uint64) (meta, bool) {
	if at+headerSize+metaSize > uint64(len(b)) {
		return meta{}, false
	}
	p := b[at+headerSize:][:metaSize]
	sum := fnv.New64a()
	_, _ = sum.Write(p[:metaSize-8])
	n := binary.NativeEndian
	if n.Uint32(p) != metaMagic || n.Uint32(p[4:]) != metaVersion || n.Uint64(p[metaSize-8:]) != sum.Sum64() {
		return meta{}, false
	}
	return meta{
		pageSize: uint64(n.Uint32(p[8:])), root: n.Uint64(p[16:]), freelist: n.Uint64(p[32:]), pages: n.Uint64(p[40:]), tx: n.Uint64(p[48:]),
	}, true
}

// newestMeta returns the meta page that bbolt uses: the valid meta page with the greatest
// transaction number. It returns false if neither meta page is valid. bbolt itself then reports the
// damage.
func newestMeta(b []byte) (meta, bool) {
	first, ok := metaAt(b, 0)
	for size := uint64(1 << 10); !ok && size <= 1<<24; size <<= 1 { // if the process was killed, the first meta page may be half written
		first, ok = metaAt(b, size)
	}
	if !ok {
		return meta{}, false
	}
	newest := first
	for at := range uint64(2) {
		if m, ok := metaAt(b, at*first.pageSize); ok && m.tx > newest.tx {
			newest = m
		}
	}
	newest.pageSize = first.pageSize
	return newest, true
}

// checkStructure returns an error if damage of the file could make bbolt crash, or could hide an
// item of the file from bbolt.
func checkStructure(b []byte) error {
	m, ok := newestMeta(b)
	if !ok {
		return nil
	}
	size := m.pageSize
	switch {
	case size < 1<<10 || size > 1<<16 || size&(size-1) != 0:
		return damagef("its pages have %d bytes", size)
	case m.pages > uint64(len(b))/size:
		return damagef("it has %d bytes and should have %d pages of %d", len(b), m.pages, size)
	case m.tx > maxTx:
		return damagef("its last commit has the number %d", m.tx)
	}
	s := &structure{b: b, pageSize: size, pages: m.pages, used: make([]uint64, m.pages/64+1)}
	if err := s.tree(m.root, 0, interval{}, s.rootItem); err != nil {
		return err
	}
	return s.freelist(m.freelist)
}

// structure is the state of one check of a file. It records which pages it has reached, because
// a file that refers to a page twice is damaged.
type structure struct {
	b               []byte
	pageSize, pages uint64
	used            []uint64 // bit set of the pages that are in use
}

// use adds a page to the set of used pages. It returns an error if the set already contains the
// page, or if the page is not a data page.
func (s *structure) use(id uint64) error {
	if id < 2 || id >= s.pages {
		return damagef("page %d is not a data page of its %d", id, s.pages)
	}
	if s.used[id/64]&(1<<(id%64)) != 0 {
		return damagef("page %d is used twice", id)
	}
	s.used[id/64] |= 1 << (id % 64)
	return nil
}

// page returns the bytes of a page, including the overflow pages that follow it. It records
// that these pages are in use.
func (s *structure) page(id uint64) ([]byte, error) {
	if err := s.use(id); err != nil {
		return nil, err
	}
	p := s.b[id*s.pageSize:]
	if n := binary.NativeEndian.Uint64(p); n != id {
		return nil, damagef("page %d says that it is page %d", id, n)
	}
	more := uint64(binary.NativeEndian.Uint32(p[12:]))
	for n := range more {
		if err := s.use(id + 1 + n); err != nil {
			return nil, err
		}
	}
	return p[:(more+1)*s.pageSize], nil
}

// interval is a range that contains all keys of a page: from <= key < to. If from is nil, there is
// no lower bound. If to is nil, there is no upper bound.
type interval struct{ from, to []byte }

// item is a function that checks one item on a leaf page.
type item func(flags uint32, key, value []byte) error

// tree checks a page and all pages below it, and calls the function "visit" with every item. It
// returns an error if a key lies outside the bounds.
func (s *structure) tree(id uint64, depth int, bounds interval, visit item) error {
	if depth > maxDepth {
		return damagef("page %d is too deep in its tree", id)
	}
	p, err := s.page(id)
	if err != nil {
		return err
	}
	kind, count := binary.NativeEndian.Uint16(p[8:]), int(binary.NativeEndian.Uint16(p[10:]))
	switch {
	case headerSize+count*elementSize > len(p):
		return damagef("page %d has no room for %d items", id, count)
	case kind == leafPage:
		return leaves(p, count, bounds, visit)
	case kind == branchPage && count > 0:
		return s.branches(p, count, depth, bounds, visit)
	}
	return damagef("page %d is not one of a tree", id)
}

// branches checks a branch page. Each of its elements contains the first key of the page to
// which the element points.
func (s *structure) branches(p []byte, count, depth int, bounds interval, visit item) error {
	at := func(i int) ([]byte, error) {
		e := p[headerSize+i*elementSize:]
		return part(e, uint64(binary.NativeEndian.Uint32(e)), uint64(binary.NativeEndian.Uint32(e[4:])))
	}
	key, err := at(0)
	if err != nil {
		return err
	}
	for i := range count {
		below := interval{key, bounds.to}
		if i+1 < count {
			if below.to, err = at(i + 1); err != nil {
				return err
			}
		}
		if err := bounds.has(key); err != nil {
			return err
		}
		if err := s.tree(binary.NativeEndian.Uint64(p[headerSize+i*elementSize+8:]), depth+1, below, visit); err != nil {
			return err
		}
		bounds.from, key = key, below.to
		if i+1 < count && bytes.Compare(bounds.from, key) >= 0 {
			return errOrder
		}
	}
	return nil
}

// leaves checks the items of a leaf page.
func leaves(p []byte, count int, bounds interval, visit item) error {
	for i := range count {
		e := p[headerSize+i*elementSize:]
		place, keySize, valueSize := binary.NativeEndian.Uint32(e[4:]), binary.NativeEndian.Uint32(e[8:]), binary.NativeEndian.Uint32(e[12:])
		pair, err := part(e, uint64(place), uint64(keySize)+uint64(valueSize))
		if err != nil {
			return err
		}
		key := pair[:keySize]
		if err := bounds.has(key); err != nil {
			return err
		}
		if i > 0 && bytes.Equal(bounds.from, key) {
			return errOrder
		}
		bounds.from = key
		if err := visit(binary.NativeEndian.Uint32(e), key, pair[keySize:]); err != nil {
			return err
		}
	}
	return nil
}

// part returns element[at:at+size]. It returns an error if the element is too short for that,
// or if size exceeds maxValue.
func part(element []byte, at, size uint64) ([]byte, error) {
	if at+size > uint64(len(element)) || size > maxValue {
		return nil, damagef("an item is not where it should be")
	}
	return element[at : at+size], nil
}

const errOrder = damageError("its keys are not in order")

func (bounds interval) has(key []byte) error {
	if bytes.Compare(key, bounds.from) < 0 || bounds.to != nil && bytes.Compare(key, bounds.to) >= 0 {
		return errOrder
	}
	return nil
}

// rootItem checks an item of the root page. The store is in the item whose key is the value of the
// variable "bucket". Items with other keys are ignored, because they belong to other formats.
func (s *structure) rootItem(flags uint32, key, value []byte) error {
	if !bytes.Equal(key, bucket) {
		return nil
	}
	if flags != 1 || len(value) < bucketHeaderSize {
		return damagef("its bucket is malformed")
	}
	if root := binary.NativeEndian.Uint64(value); root != 0 {
		return s.tree(root, 0, interval{}, storeItem)
	}
	inline := value[bucketHeaderSize:] // bbolt stores a small bucket as a leaf page inside the bucket's item
	if len(inline) < headerSize || binary.NativeEndian.Uint16(inline[8:]) != leafPage {
		return damagef("its bucket is malformed")
	}
	count := int(binary.NativeEndian.Uint16(inline[10:]))
	if headerSize+count*elementSize > len(inline) {
		return damagef("its bucket has no room for %d items", count)
	}
	return leaves(inline, count, interval{}, storeItem)
}

// storeItem refuses a bucket inside the store's bucket. For the key of an inner bucket, bbolt
// returns no value, so a held lock with that key would look free.
func storeItem(flags uint32, _, _ []byte) error {
	if flags != 0 {
		return damagef("an item is not one of a store")
	}
	return nil
}

// freelist checks the list of free pages. It refuses a file without such a list, because bbolt
// would then search the file for free pages, without checking what it reads.
func (s *structure) freelist(id uint64) error {
	if id == noFreelist {
		return damagef("it has no list of free pages")
	}
	p, err := s.page(id)
	if err != nil {
		return err
	}
	kind, count, list := binary.NativeEndian.Uint16(p[8:]), uint64(binary.NativeEndian.Uint16(p[10:])), p[headerSize:]
	if count == manyFree {
		count, list = binary.NativeEndian.Uint64(list), list[8:]
	}
	if kind != freelistPage || count > uint64(len(list)/8) {
		return damagef("page %d is no list of free pages", id)
	}
	for i := range count {
		if err := s.use(binary.NativeEndian.Uint64(list[8*i:])); err != nil {
			return err
		}
	}
	return nil
}
