package blobtest

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// A blob has at most as many uncommitted blocks as the service allows.
func TestUncommittedBlocks(t *testing.T) {
	h, err := NewHandler(nil, &Options{AllowAnyone: true})
	if err != nil {
		t.Fatal(err)
	}
	send := func(target, body string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("PUT", "/"+DefaultAccount+"/box"+target, strings.NewReader(body)))
		return w
	}
	send("?restype=container", "")
	a := h.accounts[DefaultAccount]
	a.putEntry("box", a.find("box", "").container, "blob", &entry{blocks: make([]block, maxUncommitted-1)})
	a.find("box", "blob").entry.blocks[0].id = "MDAx"
	for _, want := range []int{201, 409} {
		if w := send("/blob?comp=block&blockid=MDAx", "x"); w.Code != want {
			t.Errorf("%d %s, want %d", w.Code, w.Body, want)
		}
	}
}

// The server stops parsing a block list at the first invalid element.
func TestHugeBlockLists(t *testing.T) {
	for _, o := range []struct {
		body string
		want error
	}{
		{"<BlockList>" + strings.Repeat("<Latest/>", 1e6) + "</BlockList>", errBlockListTooLong},
		{"<BlockList><Latest>" + strings.Repeat("<a>", 1e6), errXML},
	} {
		body := []byte(o.body)
		took := testing.AllocsPerRun(1, func() {
			if _, err := parseBlockList(body); err != o.want {
				t.Errorf("%.30s: %v, want %v", body, err, o.want)
			}
		})
		if took > 10*maxCommitted {
			t.Errorf("%.30s: %v allocations", body, took)
		}
	}
}
