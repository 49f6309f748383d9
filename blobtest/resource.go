package blobtest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/fencedlease/lease"
)

// An account has containers. Its mutex protects the maps and what they contain. It is never held while
// the authority is asked; see gates.
type account struct {
	name string
	key  []byte

	mu         sync.Mutex
	containers map[string]*container
}

// A container exists until it is deleted. A new container of the same name is another value, so a
// request that outlives a container cannot change the next one.
type container struct {
	attrs *attributes
	blobs map[string]*entry
}

// attributes describe a container. They are never changed, only replaced.
type attributes struct {
	etag     string
	modified time.Time
	metadata metadata
	public   string // access without a signature, which is shown but not granted
}

// found is what exists under the names of a request. A field is nil if that does not exist.
type found struct {
	container *container
	*attributes
	entry *entry
}

// An entry is everything under the name of a blob. It is never changed, only replaced.
type entry struct {
	current   *version // nil if there are only uncommitted blocks
	blocks    []block  // uncommitted; of two blocks with the same ID the later one counts
	snapshots []*version
}

// A version is the content of a blob at one time. It is never changed.
type version struct {
	etag     string
	created  time.Time
	modified time.Time
	snapshot time.Time // when the snapshot was taken; zero for a blob itself
	metadata metadata
	props    *properties
	tier     string // as the client set it; empty if it did not
	data     segments
	blocks   []block // committed; nil if the content was put as a whole
	copied   *copied
}

// metadata are names and values, ordered by the lower case of the names. The names have the case in
// which the client sent them.
type metadata [][2]string

// A block is a part of a blob.
type block struct {
	id   string // as sent, base64
	data []byte
}

// segments are the content of a blob. They share the bytes of its blocks.
type segments [][]byte

func (s segments) size() (n int64) {
	for _, b := range s {
		n += int64(len(b))
	}
	return n
}

// slice returns size bytes from offset on. There must be as many.
func (s segments) slice(offset, size int64) (part segments) {
	for _, b := range s {
		n := int64(len(b))
		if offset >= n {
			offset -= n
			continue
		}
		b = b[offset:min(n, offset+size)]
		offset, size = 0, size-int64(len(b))
		if part = append(part, b); size <= 0 {
			break
		}
	}
	return part
}

// find returns what exists under the names.
func (a *account) find(container, blob string) (f found) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if f.container = a.containers[container]; f.container != nil {
		f.attributes, f.entry = f.container.attrs, f.container.blobs[blob]
	}
	return f
}

// uncommitted returns an empty version, for a blob that has only uncommitted blocks.
func (f found) uncommitted() *version {
	return &version{etag: "0x0", created: f.modified, modified: f.modified, props: &properties{}}
}

// put sets the entry of a blob, or removes it if e is nil. It does nothing and returns false if b is no
// longer the container of its name.
func (a *account) put(container string, b *container, blob string, e *entry) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.containers[container] != b {
		return false
	}
	if e == nil {
		delete(b.blobs, blob)
	} else {
		b.blobs[blob] = e
	}
	return true
}

// newETag returns an entity tag, without its quotes, that no other version has.
func (h *Handler) newETag() string {
	return fmt.Sprintf("0x8DE%012X", h.etags.Add(1))
}

// LeaseName returns the name of the lease of a blob, or of a container if blob is empty. It is
// account/container/blob. If that is too long for an authority, the name ends in a hash instead. No two
// resources share a name.
func LeaseName(account, container, blob string) string {
	name := account + "/" + container
	if blob != "" {
		name += "/" + blob
	}
	// A name of MaxLabel bytes always ends in a hash, so it cannot equal a name that does not.
	if len(name) < lease.MaxLabel {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	mark := "#" + hex.EncodeToString(sum[:])
	head := strings.ToValidUTF8(name[:lease.MaxLabel-len(mark)], "#")
	return head + strings.Repeat("#", lease.MaxLabel-len(mark)-len(head)) + mark
}
