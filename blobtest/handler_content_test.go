package blobtest_test

import (
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease/blobtest"
)

// SPEC M9, M12: every operation that changes a blob is a write. If a lease is in force, the server
// refuses a write without its ID. A write ends an expired lease.
func TestWrites(t *testing.T) {
	for _, o := range []struct {
		name, method, url string
		h                 []string
		body              string
		status            int
	}{
		{"put", "PUT", path, []string{"x-ms-blob-type", "BlockBlob"}, "again", 201},
		{"metadata", "PUT", path + "?comp=metadata", []string{"x-ms-meta-a", "b"}, "", 200},
		{"properties", "PUT", path + "?comp=properties", nil, "", 200},
		{"block", "PUT", path + "?comp=block&blockid=MDAx", nil, "block", 201},
		{"block list", "PUT", path + "?comp=blocklist", nil, "<BlockList></BlockList>", 201},
		{"copy", "PUT", path, []string{"x-ms-copy-source", "http://127.0.0.1" + account + "/box/source", "x-ms-requires-sync", "true"}, "", 202},
		{"delete", "DELETE", path, nil, "", 202},
	} {
		t.Run(o.name, func(t *testing.T) {
			c := newClient(t, blobtest.Options{})
			c.must(201, "PUT", account+"/box/source", []string{"x-ms-blob-type", "BlockBlob"}, "source")
			before := c.acquire(idA, "15").header.Get("ETag")
			if a := c.must(412, o.method, o.url, o.h, o.body); a.code() != "LeaseIdMissing" {
				t.Error(a.code())
			}
			h := append(slices.Clone(o.h), "x-ms-lease-id", idB)
			if a := c.must(412, o.method, o.url, h, o.body); a.code() != "LeaseIdMismatchWithBlobOperation" {
				t.Error(a.code())
			}
			if got := c.must(200, "HEAD", path, nil, "").header.Get("ETag"); got != before {
				t.Error("a refused write changed the blob")
			}
			c.h.Clock().Step(15 * time.Second)
			c.must(o.status, o.method, o.url, o.h, o.body)
			status := 409
			if o.name == "delete" {
				status = 404
			}
			c.lease(status, "renew", "x-ms-lease-id", idA)
		})
		t.Run(o.name+" held", func(t *testing.T) {
			c := newClient(t, blobtest.Options{})
			c.must(201, "PUT", account+"/box/source", []string{"x-ms-blob-type", "BlockBlob"}, "source")
			c.acquire(idA, "15")
			c.must(o.status, o.method, o.url, append(slices.Clone(o.h), "x-ms-lease-id", idA), o.body)
			if o.name != "delete" {
				c.lease(200, "renew", "x-ms-lease-id", idA)
			}
		})
	}
}

// SPEC W10: a new blob has no lease, even if an earlier one of its name had. Its tokens continue from there.
func TestNewBlobsHaveNoLease(t *testing.T) {
	c := newClient(t, blobtest.Options{})
	c.acquire(idA, "-1")
	c.must(202, "DELETE", path, []string{"x-ms-lease-id", idA}, "")
	c.must(404, "HEAD", path, nil, "")
	c.put(201)
	if s := c.must(200, "HEAD", path, nil, "").header.Get("x-ms-lease-state"); s != "available" {
		t.Errorf("state %s", s)
	}
	c.acquire(idB, "15")
	// A new container has no lease either.
	c.must(202, "DELETE", account+"/box?restype=container", nil, "")
	if a := c.must(404, "HEAD", path, nil, ""); a.code() != "ContainerNotFound" {
		t.Error(a.code())
	}
	c.must(201, "PUT", account+"/box?restype=container", nil, "")
	c.put(201)
	c.acquire(idC, "15")
}

// A read returns the properties and the metadata that were written.
func TestPropertiesAndMetadata(t *testing.T) {
	c := newClient(t, blobtest.Options{})
	c.h.Clock().Step(time.Hour) // a new content does not change the creation time
	c.put(201, "x-ms-blob-content-type", "text/plain", "x-ms-blob-content-encoding", "identity", "x-ms-blob-content-language", "de",
		"x-ms-blob-cache-control", "no-store", "x-ms-blob-content-disposition", "inline", "x-ms-meta-One", " 1 ", "x-ms-meta-two_2", "2")
	a := c.must(200, "GET", path, nil, "")
	for name, want := range map[string]string{
		"Content-Type": "text/plain", "Content-Encoding": "identity", "Content-Language": "de", "Cache-Control": "no-store",
		"Content-Disposition": "inline", "x-ms-meta-one": "1", "x-ms-meta-two_2": "2", "Content-Length": "5",
		"Content-MD5": "XUFAKrxLKna5cZ2REBfFkg==", "x-ms-blob-type": "BlockBlob", "Accept-Ranges": "bytes",
		"x-ms-creation-time": "Thu, 26 Jan 2012 23:30:18 GMT", "Last-Modified": "Fri, 27 Jan 2012 00:30:18 GMT",
	} {
		if got := a.header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if a.body != "hello" {
		t.Errorf("body %q", a.body)
	}
	c.must(200, "PUT", path+"?comp=metadata", []string{"x-ms-meta-three", "3"}, "")
	c.must(200, "PUT", path+"?comp=properties", []string{"x-ms-blob-content-type", "text/html"}, "")
	a = c.must(200, "HEAD", path, nil, "")
	if a.header.Get("x-ms-meta-one") != "" || a.header.Get("x-ms-meta-three") != "3" || a.header.Get("Content-Type") != "text/html" || a.header.Get("Content-Language") != "" {
		t.Errorf("%v", a.header)
	}
	if a := c.must(400, "PUT", path+"?comp=metadata", []string{"x-ms-meta-1a", "x"}, ""); a.code() != "InvalidMetadata" {
		t.Error(a.code())
	}
	if a := c.must(400, "PUT", path+"?comp=metadata", []string{"x-ms-meta-a", strings.Repeat("x", 8<<10)}, ""); a.code() != "MetadataTooLarge" {
		t.Error(a.code())
	}
}

func TestRanges(t *testing.T) {
	c := newClient(t, blobtest.Options{})
	for _, o := range []struct {
		value  string
		status int
		body   string
		rng    string
	}{
		{"bytes=0-", 206, "hello", "bytes 0-4/5"},
		{"bytes=1-2", 206, "el", "bytes 1-2/5"},
		{"bytes=4-99", 206, "o", "bytes 4-4/5"},
		{"bytes=5-", 416, "", "bytes */5"},
		{"bytes=-2", 200, "hello", ""},
		{"bytes=3-2", 200, "hello", ""},
		{"lines=1-2", 200, "hello", ""},
		{"bytes=a-b", 200, "hello", ""},
	} {
		for _, name := range []string{"Range", "x-ms-range"} {
			a := c.must(o.status, "GET", path, []string{name, o.value}, "")
			if o.status != 416 && a.body != o.body || a.header.Get("Content-Range") != o.rng {
				t.Errorf("%s %s: %q %s", name, o.value, a.body, a.header.Get("Content-Range"))
			}
		}
	}
	c.must(400, "GET", path, []string{"x-ms-range-get-content-md5", "true"}, "")
	a := c.must(206, "GET", path, []string{"Range", "bytes=0-0", "x-ms-range", "bytes=1-3", "x-ms-range-get-content-md5", "true"}, "")
	if a.body != "ell" || a.header.Get("Content-MD5") == "" || a.header.Get("x-ms-blob-content-md5") != "XUFAKrxLKna5cZ2REBfFkg==" {
		t.Errorf("%q %v", a.body, a.header)
	}
}

func TestBlocks(t *testing.T) {
	c := newClient(t, blobtest.Options{})
	target := account + "/box/blocks"
	id := func(n int) string { return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%03d", n)) }
	block := func(status, n int, body string) answer {
		return c.must(status, "PUT", target+"?comp=block&blockid="+id(n), nil, body)
	}
	list := func(status int, body string) answer {
		return c.must(status, "PUT", target+"?comp=blocklist", nil, "<?xml version=\"1.0\"?><BlockList>"+body+"</BlockList>")
	}
	block(201, 1, "one ")
	block(201, 2, "two ")
	block(201, 2, "TWO ")
	c.must(404, "HEAD", target, nil, "")
	c.must(201, "PUT", target+"?comp=lease", []string{"x-ms-lease-action", "acquire", "x-ms-lease-duration", "15", "x-ms-proposed-lease-id", idA}, "")
	if a := block(412, 3, "x"); a.code() != "LeaseIdMissing" {
		t.Error("a blob of uncommitted blocks is not guarded: ", a.code())
	}
	c.must(412, "DELETE", target, nil, "")
	c.h.Clock().Step(time.Minute)
	if l := c.list(account + "/box?restype=container&comp=list&include=uncommittedblobs"); len(l.Blobs) != 2 || l.Blobs[1].State != "expired" {
		t.Errorf("%+v", l)
	}
	a := c.must(200, "GET", target+"?comp=blocklist&blocklisttype=all", nil, "")
	if !strings.Contains(a.body, "<CommittedBlocks></CommittedBlocks><UncommittedBlocks><Block><Name>"+id(1)+"</Name><Size>4</Size></Block><Block>") {
		t.Error(a.body)
	}
	list(201, "<Latest>"+id(2)+"</Latest><Uncommitted>"+id(1)+"</Uncommitted>")
	if a := c.must(200, "GET", target, nil, ""); a.body != "TWO one " {
		t.Errorf("%q", a.body)
	}
	if a := c.must(206, "GET", target, []string{"Range", "bytes=2-5"}, ""); a.body != "O on" {
		t.Errorf("%q", a.body)
	}
	block(201, 3, "three")
	list(201, "<Committed>"+id(1)+"</Committed><Latest>"+id(3)+"</Latest><Latest>"+id(2)+"</Latest>")
	if a := c.must(200, "GET", target, nil, ""); a.body != "one threeTWO " {
		t.Errorf("%q", a.body)
	}
	if a := list(400, "<Uncommitted>"+id(1)+"</Uncommitted>"); a.code() != "InvalidBlockList" {
		t.Error(a.code())
	}
	list(201, " <Latest>\n"+id(1)[:2]+"<!-- split -->"+id(1)[2:]+" </Latest><!-- and no more --> ")
	for _, body := range []string{"<BlockList></BlockList><BlockList></BlockList>", "<BlockList></BlockList>x", "<BlockList>x</BlockList>", "<BlockList>", "<List></List>", "x", "",
		"<BlockList><Latest>MDAx<Latest>MDAx</Latest></Latest></BlockList>", "<BlockList><Latest>MDAx</BlockList>"} {
		if a := c.must(400, "PUT", path+"?comp=blocklist", nil, body); a.code() != "InvalidXmlDocument" {
			t.Errorf("%s: %s", body, a.code())
		}
	}
	many := strings.Repeat("<Latest>"+id(1)+"</Latest>", 50_000)
	list(201, many)
	if a := list(400, many+"<Latest>"+id(1)+"</Latest>"); a.code() != "BlockListTooLong" {
		t.Error(a.code())
	}
	if a := list(400, "<Other>x</Other>"); a.code() != "InvalidXmlDocument" {
		t.Error(a.code())
	}
	block(201, 4, "x")
	// The server compares the lengths of the decoded IDs: MDA= is as long as MDAx, but encodes two bytes.
	for _, other := range []string{"MDA=", "MD==", "MDAwMA=="} {
		if a := c.must(400, "PUT", target+"?comp=block&blockid="+url.QueryEscape(other), nil, "x"); a.code() != "InvalidBlobOrBlock" {
			t.Errorf("%s beside an ID of three bytes: %s", other, a.code())
		}
	}
	a = c.must(400, "PUT", target+"?comp=block&blockid=AAAAAAAA", nil, "x")
	if a.code() != "InvalidBlobOrBlock" {
		t.Error(a.code())
	}
	a = c.must(400, "PUT", target+"?comp=block&blockid=!", nil, "x")
	if a.code() != "InvalidQueryParameterValue" {
		t.Error(a.code())
	}
}

func TestCopy(t *testing.T) {
	c := newClient(t, blobtest.Options{})
	target := account + "/box/copy"
	source := func(s string) []string { return []string{"x-ms-copy-source", "http://127.0.0.1" + s} }
	c.acquire(idA, "15") // the lease of the source does not prevent reading it
	a := c.must(202, "PUT", target, source(path), "")
	if a.header.Get("x-ms-copy-status") != "success" || a.header.Get("x-ms-copy-id") == "" {
		t.Error(a.header)
	}
	a = c.must(200, "GET", target, nil, "")
	if a.body != "hello" || a.header.Get("x-ms-copy-progress") != "5/5" || a.header.Get("x-ms-lease-state") != "available" {
		t.Errorf("%q %v", a.body, a.header)
	}
	for _, o := range []struct {
		h      []string
		status int
		code   string
	}{
		{source(path + "-none"), 404, "CannotVerifyCopySource"},
		{source("/otheraccount/box/blob"), 400, "InvalidHeaderValue"},
		{[]string{"x-ms-copy-source", "http://127.0.0.2" + path}, 400, "CopyAcrossAccountsNotSupported"},
		{source(account + "/box?restype=container"), 400, "InvalidHeaderValue"},
		{[]string{"x-ms-copy-source", "::"}, 400, "InvalidHeaderValue"},
		{append(source(path), "x-ms-source-if-match", `"0x8D"`), 412, "SourceConditionNotMet"},
		{[]string{"x-ms-copy-source", path}, 400, "InvalidHeaderValue"},
		{append(source(path), "x-ms-source-lease-id", idA), 400, "UnsupportedHeader"},
	} {
		if a := c.must(o.status, "PUT", target, o.h, ""); a.code() != o.code {
			t.Errorf("%q: %s, want %s", o.h, a.code(), o.code)
		}
	}
	// If the destination of a Copy Blob has a lease, it must be an infinite one.
	if a := c.must(412, "PUT", path, append(source(target), "x-ms-lease-id", idA), ""); a.code() != "InfiniteLeaseDurationRequired" {
		t.Error(a.code())
	}
	c.must(202, "PUT", path, append(source(target), "x-ms-lease-id", idA, "x-ms-requires-sync", "true"), "")
	c.acquire(idA, "-1")
	c.must(202, "PUT", path, append(source(target), "x-ms-lease-id", idA), "")
	if a := c.must(409, "PUT", target+"?comp=copy&copyid=x", []string{"x-ms-copy-action", "abort"}, ""); a.code() != "NoPendingCopyOperation" {
		t.Error(a.code())
	}
}

func TestSnapshots(t *testing.T) {
	c := newClient(t, blobtest.Options{})
	one := c.must(201, "PUT", path+"?comp=snapshot", nil, "").header.Get("x-ms-snapshot")
	two := c.must(201, "PUT", path+"?comp=snapshot", []string{"x-ms-meta-n", "2"}, "").header.Get("x-ms-snapshot")
	if one == two || one != "2012-01-26T23:30:18.2500000Z" {
		t.Errorf("%s, %s", one, two)
	}
	c.must(201, "PUT", path, []string{"x-ms-blob-type", "BlockBlob"}, "changed")
	a := c.must(200, "GET", path+"?snapshot="+two, nil, "")
	if a.body != "hello" || a.header.Get("x-ms-meta-n") != "2" || a.header.Get("x-ms-lease-state") != "" {
		t.Errorf("%q %v", a.body, a.header)
	}
	if a := c.must(409, "DELETE", path, nil, ""); a.code() != "SnapshotsPresent" {
		t.Error(a.code())
	}
	c.must(202, "DELETE", path, []string{"x-ms-delete-snapshots", "only"}, "")
	c.must(404, "GET", path+"?snapshot="+two, nil, "")
	c.must(201, "PUT", path+"?comp=snapshot", nil, "")
	c.must(202, "DELETE", path, []string{"x-ms-delete-snapshots", "include"}, "")
	c.must(404, "GET", path, nil, "")
}

// A listing is the answer to a list operation.
type listing struct {
	XMLName    xml.Name   `xml:"EnumerationResults"`
	Blobs      []listItem `xml:"Blobs>Blob"`
	Prefixes   []string   `xml:"Blobs>BlobPrefix>Name"`
	Containers []listItem `xml:"Containers>Container"`
	NextMarker string
}

type listItem struct {
	Name, Snapshot string
	Status         string `xml:"Properties>LeaseStatus"`
	State          string `xml:"Properties>LeaseState"`
	Duration       string `xml:"Properties>LeaseDuration"`
	Etag           string `xml:"Properties>Etag"`
	Size           int    `xml:"Properties>Content-Length"`
}

func (c *client) list(target string) (l listing) {
	c.t.Helper()
	a := c.must(200, "GET", target, nil, "")
	if err := xml.Unmarshal([]byte(strings.TrimPrefix(a.body, "\ufeff")), &l); err != nil {
		c.t.Fatal(err, a.body)
	}
	return l
}

// Lists have pages, and show the state of every lease.
func TestLists(t *testing.T) {
	c := newClient(t, blobtest.Options{})
	for _, name := range []string{"a/1", "a/2", "b<&>", "c"} {
		c.must(201, "PUT", account+"/box/"+strings.NewReplacer("<", "%3C", "&", "%26", ">", "%3E").Replace(name), []string{"x-ms-blob-type", "BlockBlob"}, "x")
	}
	c.acquire(idA, "-1")
	c.must(201, "PUT", account+"/box/c?comp=lease", []string{"x-ms-lease-action", "acquire", "x-ms-lease-duration", "15"}, "")
	c.must(201, "PUT", account+"/box/c?comp=snapshot", nil, "")
	c.h.Clock().Step(time.Minute)
	box := account + "/box?restype=container&comp=list"
	var got []string
	for marker := ""; ; {
		l := c.list(box + "&maxresults=2&include=snapshots,metadata&marker=" + marker)
		for _, b := range l.Blobs {
			got = append(got, fmt.Sprint(b.Name, " ", b.Snapshot != "", " ", b.State, " ", b.Status, " ", b.Duration))
		}
		if marker = l.NextMarker; marker == "" {
			break
		}
	}
	want := []string{"a/1 false available unlocked ", "a/2 false available unlocked ", "b<&> false available unlocked ",
		"blob false leased locked infinite", "c true   ", "c false expired unlocked "}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	l := c.list(box + "&delimiter=/")
	if !slices.Equal(l.Prefixes, []string{"a/"}) || len(l.Blobs) != 3 {
		t.Errorf("%+v", l)
	}
	if l := c.list(box + "&prefix=a/"); len(l.Blobs) != 2 {
		t.Errorf("%+v", l)
	}
	c.must(201, "PUT", account+"/box?restype=container&comp=lease", []string{"x-ms-lease-action", "acquire", "x-ms-lease-duration", "-1"}, "")
	c.must(201, "PUT", account+"/another?restype=container", nil, "")
	l = c.list(account + "?comp=list&maxresults=1")
	if len(l.Containers) != 1 || l.Containers[0].Name != "another" || l.NextMarker == "" {
		t.Errorf("%+v", l)
	}
	if tag := c.must(200, "HEAD", account+"/another?restype=container", nil, "").header.Get("ETag"); l.Containers[0].Etag != tag || tag[0] != '"' {
		t.Errorf("a container's tag is listed as %s, and it is %s", l.Containers[0].Etag, tag)
	}
	if tag := c.must(200, "HEAD", path, nil, "").header.Get("ETag"); `"`+c.list(box + "&prefix=blob").Blobs[0].Etag+`"` != tag {
		t.Errorf("a blob's tag is listed otherwise than %s without its quotes", tag)
	}
	for target, want := range map[string]string{
		box + "&prefix=c":                             "<Prefix>c</Prefix><Blobs>",
		box + "&maxresults=7&delimiter=/":             "<MaxResults>7</MaxResults><Delimiter>/</Delimiter><Blobs>",
		account + "?comp=list":                        "/\"><Containers>",
		account + "?comp=list&marker=" + l.NextMarker: "<Marker>" + l.NextMarker + "</Marker><Containers>",
	} {
		if a := c.must(200, "GET", target, nil, ""); !strings.Contains(a.body, want) {
			t.Errorf("%s: no %s in %s", target, want, a.body)
		}
	}
	l = c.list(account + "?comp=list&marker=" + l.NextMarker)
	if len(l.Containers) != 1 || l.Containers[0].State != "leased" || l.Containers[0].Duration != "infinite" {
		t.Errorf("%+v", l)
	}
	if a := c.must(400, "GET", box+"&maxresults=0", nil, ""); a.code() != "OutOfRangeQueryParameterValue" {
		t.Error(a.code())
	}
}

// SPEC W8: the lease of a container protects the container only from deletion.
func TestContainerLease(t *testing.T) {
	c := newClient(t, blobtest.Options{})
	box := account + "/box?restype=container"
	lease := []string{"x-ms-lease-action", "acquire", "x-ms-lease-duration", "15", "x-ms-proposed-lease-id", idA}
	c.must(201, "PUT", box+"&comp=lease", lease, "")
	c.acquire(idB, "-1") // the lease of a blob does not protect its container
	c.put(201, "x-ms-lease-id", idB)
	c.must(200, "PUT", box+"&comp=metadata", []string{"x-ms-meta-a", "b"}, "")
	if a := c.put(412, "x-ms-lease-id", idA); a.code() != "LeaseIdMismatchWithBlobOperation" {
		t.Error(a.code())
	}
	if a := c.must(412, "DELETE", box, nil, ""); a.code() != "LeaseIdMissing" || !strings.Contains(a.body, "lease on the container") {
		t.Error(a.code(), a.body)
	}
	c.must(412, "DELETE", box, []string{"x-ms-lease-id", idA, "If-Unmodified-Since", "Wed, 26 Jan 2011 23:30:18 GMT"}, "")
	c.must(202, "DELETE", box, []string{"x-ms-lease-id", idA}, "")
	c.must(404, "HEAD", box, nil, "")
	if a := c.must(404, "PUT", box+"&comp=lease", lease, ""); a.code() != "ContainerNotFound" {
		t.Error(a.code())
	}
	c.must(201, "PUT", box, nil, "")
	if a := c.must(409, "PUT", box, nil, ""); a.code() != "ContainerAlreadyExists" {
		t.Error(a.code())
	}
}

// Deleting only the snapshots does not modify the blob: an expired lease and uncommitted blocks stay.
func TestDeleteOnlySnapshots(t *testing.T) {
	c := newClient(t, blobtest.Options{})
	c.must(201, "PUT", path+"?comp=snapshot", nil, "")
	c.must(201, "PUT", path+"?comp=snapshot", nil, "")
	c.must(201, "PUT", path+"?comp=block&blockid=MDAx", nil, "block")
	c.acquire(idA, "15")
	c.h.Clock().Step(15 * time.Second)
	c.must(202, "DELETE", path, []string{"x-ms-delete-snapshots", "only"}, "")
	c.lease(200, "renew", "x-ms-lease-id", idA)
	if l := c.list(account + "/box?restype=container&comp=list&include=snapshots"); len(l.Blobs) != 1 {
		t.Errorf("%+v", l)
	}
	if a := c.must(200, "GET", path+"?comp=blocklist&blocklisttype=uncommitted", nil, ""); !strings.Contains(a.body, "MDAx") {
		t.Error(a.body)
	}
}

// If one snapshot is deleted, all other snapshots stay. A snapshot has no uncommitted blocks.
func TestDeleteOneSnapshot(t *testing.T) {
	c := newClient(t, blobtest.Options{})
	one := c.must(201, "PUT", path+"?comp=snapshot", nil, "").header
	two := c.must(201, "PUT", path+"?comp=snapshot", []string{"x-ms-meta-a", "b"}, "").header
	if one.Get("ETag") == two.Get("ETag") || one.Get("ETag") != c.must(200, "HEAD", path, nil, "").header.Get("ETag") {
		t.Errorf("%s, and with metadata of its own %s", one.Get("ETag"), two.Get("ETag"))
	}
	c.must(201, "PUT", path+"?comp=block&blockid=MDAx", nil, "block")
	if a := c.must(200, "GET", path+"?comp=blocklist&blocklisttype=all&snapshot="+two.Get("x-ms-snapshot"), nil, ""); strings.Contains(a.body, "Uncommitted") {
		t.Error(a.body)
	}
	c.must(202, "DELETE", path+"?snapshot="+one.Get("x-ms-snapshot"), nil, "")
	c.must(404, "HEAD", path+"?snapshot="+one.Get("x-ms-snapshot"), nil, "")
	c.must(200, "HEAD", path+"?snapshot="+two.Get("x-ms-snapshot"), nil, "")
	c.must(400, "DELETE", path+"?snapshot="+two.Get("x-ms-snapshot"), []string{"x-ms-delete-snapshots", "only"}, "")
}

// The server compares the checksums that a client sends with the content. A client can request the MD5 of
// a range of at most 4 MiB.
func TestSums(t *testing.T) {
	const wrong = "AAAAAAAAAAAAAAAAAAAAAA=="
	c := newClient(t, blobtest.Options{})
	for _, o := range [][3]string{
		{"x-ms-blob-content-md5", wrong, "Md5Mismatch"}, {"x-ms-blob-content-md5", "x", "InvalidHeaderValue"},
		{"Content-MD5", "x", "InvalidMd5"}, {"x-ms-content-crc64", "AAAAAAAAAAA=", "Crc64Mismatch"},
	} {
		if a := c.put(400, o[0], o[1]); a.code() != o[2] {
			t.Errorf("%q: %s", o, a.code())
		}
	}
	const most = 4 << 20
	c.must(201, "PUT", path, []string{"x-ms-blob-type", "BlockBlob"}, strings.Repeat("x", most+1))
	wants := []string{"x-ms-range-get-content-md5", "true", "Range"}
	c.must(206, "GET", path, append(wants, fmt.Sprint("bytes=0-", most-1)), "")
	c.must(400, "GET", path, append(wants, fmt.Sprint("bytes=0-", most)), "")
}
