package blobtest

import "sync/atomic"

// These constants are generous estimates of the memory that stored objects need besides the sent bytes.
const (
	placeSize = 4 << 10 // a container, or a blob with its name
	stateSize = 1 << 10 // a content, of a blob or of a snapshot
	blockSize = 256
)

// A quota limits how many bytes a Handler stores. Bytes are reserved before the data is stored.
type quota struct {
	limit int64
	used  atomic.Int64
}

func (q *quota) reserve(n int64) error {
	for {
		used := q.used.Load()
		if n > q.limit-used {
			return errFull
		}
		if q.used.CompareAndSwap(used, used+n) {
			return nil
		}
	}
}

func (q *quota) release(n int64) { q.used.Add(-n) }

// size returns the size of a container with all its blobs.
func (k *container) size() int64 {
	n := k.attrs.size()
	for _, e := range k.blobs {
		n += e.size()
	}
	return n
}

func (a *attributes) size() int64 { return placeSize + a.metadata.size() }

// size returns the size of all data under the name of a blob. If e is nil, the size is 0.
func (e *entry) size() int64 {
	if e == nil {
		return 0
	}
	n := placeSize + e.current.size() + blocksSize(e.blocks)
	for _, s := range e.snapshots {
		n += s.size()
	}
	return n
}

// The method size returns how many bytes a version counts toward MaxTotal. The count includes bytes that the
// version shares with a snapshot, or with the blob from which it was copied.
func (v *version) size() int64 {
	if v == nil {
		return 0
	}
	n := stateSize + v.metadata.size() + v.props.size() + v.data.size() + int64(len(v.blocks))*blockSize
	if v.copied != nil {
		n += int64(len(v.copied.source))
	}
	return n
}

func (p *properties) size() int64 {
	return int64(len(p.contentType) + len(p.encoding) + len(p.language) + len(p.disposition) + len(p.cacheControl))
}

func (m metadata) size() (n int64) {
	for _, v := range m {
		n += int64(len(v[0]) + len(v[1]))
	}
	return n
}

func blocksSize(blocks []block) (n int64) {
	for _, b := range blocks {
		n += blockSize + int64(len(b.data))
	}
	return n
}
