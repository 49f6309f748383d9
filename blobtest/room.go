package blobtest

import "sync/atomic"

// What a thing takes beside the bytes that clients sent, rounded up generously.
const (
	placeSize = 4 << 10 // a container, and a blob with its name
	stateSize = 1 << 10 // a content, of a blob or of a snapshot
	blockSize = 256
)

// A room is what a Handler may keep, in bytes. What is about to be kept is taken from it first.
type room struct {
	most int64
	used atomic.Int64
}

// take takes n bytes if there is room for them.
func (r *room) take(n int64) error {
	for {
		used := r.used.Load()
		if n > r.most-used {
			return errFull
		}
		if r.used.CompareAndSwap(used, used+n) {
			return nil
		}
	}
}

func (r *room) give(n int64) { r.used.Add(-n) }

// size is that of a container and all that is in it.
func (b *box) size() int64 {
	n := b.attrs.size()
	for _, e := range b.blobs {
		n += e.size()
	}
	return n
}

func (a *attributes) size() int64 { return placeSize + a.metadata.size() }

// size is that of all that stands under a name; of nothing it is zero.
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

// size counts bytes that are shared with a snapshot or the source of a copy again.
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
