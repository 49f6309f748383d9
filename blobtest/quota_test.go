package blobtest_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/fencedlease/lease/blobtest"
)

// begun is the size of the container and the blob that newClient makes.
const begun = 4<<10 + 4<<10 + 1<<10 + (len("application/octet-stream") + len("hello"))

// MaxTotal is exact: a body that fits is stored, and one with one more byte is refused and reserves nothing.
func TestMaxTotal(t *testing.T) {
	const other = account + "/box/other"
	block, metadata := []string{"x-ms-blob-type", "BlockBlob"}, []string{"x-ms-meta-a", "b"}
	for _, c := range []struct {
		what           string
		takes          int
		method, target string
		h              []string
		body           string
		status         int
		undo           string // the address to delete
	}{
		{"a container", 4<<10 + 2, "PUT", account + "/chest?restype=container", metadata, "", 201, account + "/chest?restype=container"},
		{"a container's metadata", 2, "PUT", account + "/box?restype=container&comp=metadata", metadata, "", 200, ""},
		{"a blob", 5<<10 + 24 + 10, "PUT", other, block, "0123456789", 201, other},
		{"an empty blob", 5<<10 + 24, "PUT", other, block, "", 201, other},
		{"a content instead of another, while both are there", 5, "PUT", path, block, "HELLO", 201, ""},
		{"a block of a blob that is there", 256 + 10, "PUT", path + "?comp=block&blockid=MDAx", nil, "0123456789", 201, ""},
		{"a block of one that is not", 4<<10 + 256 + 10, "PUT", other + "?comp=block&blockid=MDAx", nil, "0123456789", 201, other},
		{"a snapshot", 1<<10 + 24 + 5, "PUT", path + "?comp=snapshot", nil, "", 201, ""},
		{"a snapshot with metadata of its own", 1<<10 + 24 + 5 + 2, "PUT", path + "?comp=snapshot", metadata, "", 201, ""},
		{"a copy", 5<<10 + 24 + 5 + len("http://127.0.0.1"+path), "PUT", other, []string{"x-ms-copy-source", "http://127.0.0.1" + path}, "", 202, other},
		{"metadata", 2, "PUT", path + "?comp=metadata", metadata, "", 200, ""},
		{"properties", 2, "PUT", path + "?comp=properties", []string{"x-ms-blob-content-type", "application/octet-stream", "x-ms-blob-content-language", "de"}, "", 200, ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			for _, lacks := range []int{1, 0} {
				cl := newClient(t, blobtest.Options{MaxBody: 100, MaxBlob: 100, MaxTotal: int64(begun + c.takes - lacks)})
				times := 1
				if c.undo != "" && lacks == 0 {
					times = 3 // the quota of deleted data can be used again
				}
				for range times {
					a := cl.do(c.method, c.target, c.h, c.body)
					switch {
					case lacks == 0 && a.status != c.status:
						t.Fatalf("with just enough room: %d %s", a.status, a.body)
					case lacks > 0 && (a.status != 507 || a.code() != "InsufficientStorage"):
						t.Fatalf("with a byte too little: %d %s", a.status, a.body)
					case lacks > 0:
						if a := cl.must(200, "GET", path, nil, ""); a.body != "hello" {
							t.Errorf("what was refused left %q", a.body)
						}
					case c.undo != "":
						cl.must(202, "DELETE", c.undo, nil, "")
					}
				}
			}
		})
	}
}

// If data is deleted, reset, replaced, committed or refused, the server releases all reserved bytes, even
// if many requests run at the same time.
func TestDeletedBytesCanBeUsedAgain(t *testing.T) {
	const most = 32 << 10
	c := newClient(t, blobtest.Options{MaxBody: most, MaxBlob: most, MaxTotal: most})
	seed := rand.Uint64()
	var all sync.WaitGroup
	full := make([]int, 4)
	for i := range full {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			for range 500 {
				box := fmt.Sprint(account, "/box", r.IntN(2))
				blob := fmt.Sprint(box, "/", r.IntN(3))
				data := strings.Repeat("x", 1+r.IntN(4<<10))
				var a answer
				if r.IntN(200) == 0 {
					if err := c.h.Reset(t.Context()); err != nil {
						t.Error(err)
					}
				}
				switch r.IntN(60) % 13 {
				case 12:
					a = c.do("DELETE", box+"?restype=container", nil, "")
				case 0, 1, 2:
					a = c.do("PUT", box+"?restype=container", nil, "")
				case 3:
					a = c.do("PUT", blob, []string{"x-ms-blob-type", "BlockBlob"}, data)
				case 4, 5:
					a = c.do("PUT", blob+"?comp=block&blockid=MDAx", nil, data)
				case 6:
					a = c.do("PUT", blob+"?comp=blocklist", nil, "<BlockList><Latest>MDAx</Latest></BlockList>")
				case 7:
					a = c.do("PUT", blob+"?comp=snapshot", []string{"x-ms-meta-a", data[:r.IntN(len(data))]}, "")
					if a.status == 201 && r.IntN(2) == 0 {
						c.do("DELETE", blob+"?snapshot="+a.header.Get("x-ms-snapshot"), nil, "")
					}
				case 8:
					a = c.do("PUT", blob, []string{"x-ms-copy-source", "http://127.0.0.1" + fmt.Sprint(box, "/", r.IntN(3))}, "")
				case 9:
					a = c.do("PUT", blob+"?comp=metadata", []string{"x-ms-meta-a", data[:r.IntN(len(data))]}, "")
				case 10:
					a = c.do("DELETE", blob, []string{"x-ms-delete-snapshots", []string{"include", "only"}[r.IntN(2)]}, "")
				case 11:
					a = c.do("PUT", box+"?restype=container&comp=metadata", []string{"x-ms-meta-a", data[:r.IntN(len(data))]}, "")
				}
				if a.status == 507 {
					full[i]++
				}
			}
		})
	}
	all.Wait()
	n := 0
	for _, f := range full {
		n += f
	}
	if n < 100 {
		t.Errorf("seed %d: the server was found full %d times: that proves nothing", seed, n)
	}
	if err := c.h.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.must(201, "PUT", account+"/box?restype=container", nil, "")
	c.put(201)
	other, block := account+"/box/other", []string{"x-ms-blob-type", "BlockBlob"}
	left := most - begun - 5<<10 - 24
	if a := c.do("PUT", other, block, strings.Repeat("x", left+1)); a.status != 507 {
		t.Errorf("seed %d: there is more room than at first: %d", seed, a.status)
	}
	if a := c.do("PUT", other, block, strings.Repeat("x", left)); a.status != 201 {
		t.Errorf("seed %d: there is less room than at first: %d %s", seed, a.status, a.body)
	}
}
