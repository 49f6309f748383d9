package blobtest_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease/blobtest"
	"github.com/fencedlease/lease/leasefault"
)

// signedClient makes a handler that needs signatures, with a container, a blob and a snapshot of the blob.
func signedClient(t *testing.T) (c *client, snapshot string) {
	t.Helper()
	h, err := blobtest.NewHandler(nil, &blobtest.Options{Clock: leasefault.NewClockAt(start, 0)})
	if err != nil {
		t.Fatal(err)
	}
	c = &client{t, h, ""}
	all := accountSignature(t, "sv", today, "sp", "rwdl", "ss", "b", "srt", "sco")
	c.must(201, "PUT", account+"/box?restype=container&"+all, nil, "")
	c.must(201, "PUT", path+"?"+all, []string{"x-ms-blob-type", "BlockBlob"}, "hello")
	return c, c.must(201, "PUT", path+"?comp=snapshot&"+all, nil, "").header.Get("x-ms-snapshot")
}

// fields returns the parameters of a signature. Names and values are given in turn.
func fields(of []string) url.Values {
	q := url.Values{"se": {"2013-01-01"}}
	for i := 0; i < len(of); i += 2 {
		q.Set(of[i], of[i+1])
	}
	return q
}

// accountSignature returns a signature of the account, for the version in sv.
func accountSignature(t *testing.T, of ...string) string {
	t.Helper()
	q := fields(of)
	lines := []string{"devstoreaccount1"}
	for _, name := range []string{"sp", "ss", "srt", "st", "se", "sip", "spr", "sv"} {
		lines = append(lines, q.Get(name))
	}
	if q.Get("sv") >= "2020-12-06" {
		lines = append(lines, "")
	}
	q.Set("sig", sign(t, strings.Join(lines, "\n")+"\n"))
	return q.Encode()
}

// serviceSignature signs a container (/box), a blob (/box/blob) or a snapshot, for the version in sv.
func serviceSignature(t *testing.T, resource, snapshot string, of ...string) string {
	t.Helper()
	q := fields(of)
	v := q.Get("sv")
	resource = account + resource
	if v >= "2015-02-21" {
		resource = "/blob" + resource
	}
	lines := []string{q.Get("sp"), q.Get("st"), q.Get("se"), resource, q.Get("si")}
	if v >= "2015-04-05" {
		lines = append(lines, q.Get("sip"), q.Get("spr"))
	}
	lines = append(lines, v)
	if v >= "2018-11-09" {
		lines = append(lines, q.Get("sr"), snapshot)
	}
	if v >= "2020-12-06" {
		lines = append(lines, "")
	}
	if v >= "2013-08-15" {
		lines = append(lines, q.Get("rscc"), q.Get("rscd"), q.Get("rsce"), q.Get("rscl"), q.Get("rsct"))
	}
	q.Set("sig", sign(t, strings.Join(lines, "\n")))
	return q.Encode()
}

// The string that a client signs depends on the version.
func TestSignatureVersions(t *testing.T) {
	c, snapshot := signedClient(t)
	for _, v := range []string{"2012-02-12", "2013-08-15", "2014-02-14", "2015-02-21", "2015-04-05", "2018-03-28", "2018-11-09", "2020-12-06", today} {
		c.must(200, "GET", path+"?"+serviceSignature(t, "/box/blob", "", "sv", v, "sr", "b", "sp", "r"), nil, "")
		a := c.must(200, "GET", path+"?"+serviceSignature(t, "/box", "", "sv", v, "sr", "c", "sp", "r"), nil, "")
		if got := a.header.Get("x-ms-version"); got != v {
			t.Errorf("%s: without a header it is executed as %s", v, got)
		}
		status := 403 // the version has no account signatures
		if v >= "2015-04-05" {
			status = 200
		}
		c.must(status, "GET", path+"?"+accountSignature(t, "sv", v, "ss", "b", "srt", "o", "sp", "r"), nil, "")
	}
	c.must(403, "GET", path+"?"+serviceSignature(t, "/box/blob", "", "sv", "2011-08-18", "sr", "b", "sp", "r"), nil, "")
	ofSnapshot := serviceSignature(t, "/box/blob", snapshot, "sv", today, "sr", "bs", "sp", "rd")
	c.must(200, "GET", path+"?snapshot="+snapshot+"&"+ofSnapshot, nil, "")
	c.must(403, "GET", path+"?"+ofSnapshot, nil, "")
	c.must(403, "GET", path+"?"+serviceSignature(t, "/box/blob", "", "sv", today, "sr", "bs", "sp", "rd"), nil, "")
	c.must(202, "DELETE", path+"?snapshot="+snapshot+"&"+ofSnapshot, nil, "")
}

// Every operation needs its permissions and its type of resource. A signature can also restrict services,
// protocols, addresses and times.
func TestSignaturePermissions(t *testing.T) {
	const (
		permission, resource, scope, failed = "AuthorizationPermissionMismatch", "AuthorizationResourceTypeMismatch", "AuthorizationFailure", "AuthenticationFailed"
		box, block                          = "?restype=container", "BlockBlob"
	)
	acquire, breaks := []string{"x-ms-lease-action", "acquire", "x-ms-lease-duration", "15"}, []string{"x-ms-lease-action", "break"}
	ofAccount := func(of ...string) string {
		if !slices.Contains(of, "sv") {
			of = append(of, "sv", today)
		}
		return accountSignature(t, append([]string{"ss", "b"}, of...)...)
	}
	ofBox := func(sp string) string { return serviceSignature(t, "/box", "", "sv", today, "sr", "c", "sp", sp) }
	put := []string{"x-ms-blob-type", block}
	for _, o := range []struct {
		method, target, signature string
		h                         []string
		status                    int
		code                      string
	}{
		{"GET", "/box/blob", ofAccount("srt", "o", "sp", "r"), nil, 200, ""},
		{"GET", "/box/blob", ofAccount("srt", "o", "sp", "wdlac"), nil, 403, permission},
		{"GET", "/box/blob", ofAccount("srt", "sc", "sp", "r"), nil, 403, resource},
		{"GET", "/box/blob", ofAccount("ss", "fqt", "srt", "o", "sp", "r"), nil, 403, "AuthorizationServiceMismatch"},
		{"GET", "/box/blob", ofAccount("srt", "o", "sp", "r", "spr", "https"), nil, 403, "AuthorizationProtocolMismatch"},
		{"GET", "/box/blob", ofAccount("srt", "o", "sp", "r", "spr", "https,http"), nil, 200, ""},
		{"GET", "/box/blob", ofAccount("srt", "o", "sp", "r", "sip", "192.0.2.1"), nil, 200, ""}, // the address of httptest's requests
		{"GET", "/box/blob", ofAccount("srt", "o", "sp", "r", "sip", "192.0.2.0-192.0.2.1"), nil, 200, ""},
		{"GET", "/box/blob", ofAccount("srt", "o", "sp", "r", "sip", "192.0.2.1-192.0.2.2"), nil, 200, ""},
		{"GET", "/box/blob", ofAccount("srt", "o", "sp", "r", "sip", "192.0.2.2-192.0.2.9"), nil, 403, "AuthorizationSourceIPMismatch"},
		{"GET", "/box/blob", ofAccount("srt", "o", "sp", "r", "sip", "anybody"), nil, 403, "AuthorizationSourceIPMismatch"},
		{"GET", "/box/blob", ofAccount("srt", "o", "sp", "r", "se", "tomorrow"), nil, 403, failed},
		{"GET", "/box/blob", ofAccount("srt", "o", "sp", "r", "se", ""), nil, 403, failed},
		{"GET", "/box/blob", ofAccount("srt", "o", "sp", "r", "st", "2012-01-26T23:31Z"), nil, 403, failed},
		{"GET", "/box/blob", ofAccount("srt", "o", "sp", "r", "st", "2012-01-26T23:30Z"), nil, 200, ""},

		{"PUT", "/box/blob?comp=lease", ofAccount("srt", "o", "sp", "rdlc"), acquire, 403, permission},
		{"PUT", "/box/blob?comp=lease", ofAccount("srt", "c", "sp", "w"), acquire, 403, resource},
		{"PUT", "/box/blob?comp=lease", ofAccount("srt", "o", "sp", "w"), acquire, 201, ""},
		{"PUT", "/box/blob?comp=lease", ofAccount("srt", "o", "sp", "rlc"), breaks, 403, permission},
		{"PUT", "/box/blob?comp=lease", ofAccount("srt", "o", "sp", "d", "sv", "2016-05-31"), breaks, 403, permission},
		{"PUT", "/box/blob?comp=lease", ofAccount("srt", "o", "sp", "d", "sv", "2017-07-29"), breaks, 202, ""},
		{"PUT", "/box/blob?comp=lease", ofAccount("srt", "o", "sp", "w", "sv", "2016-05-31"), breaks, 202, ""},
		{"PUT", "/box" + box + "&comp=lease", ofAccount("srt", "o", "sp", "w"), acquire, 403, resource},
		{"PUT", "/box" + box + "&comp=lease", ofAccount("srt", "c", "sp", "w"), acquire, 201, ""},
		{"PUT", "/box" + box + "&comp=lease", ofAccount("srt", "c", "sp", "d"), breaks, 202, ""},

		{"PUT", "/box/new", ofAccount("srt", "o", "sp", "r"), put, 403, permission},
		{"PUT", "/box/new", ofAccount("srt", "o", "sp", "c"), put, 201, ""},
		{"PUT", "/box/new", ofAccount("srt", "o", "sp", "c"), put, 403, "UnauthorizedBlobOverwrite"},
		{"PUT", "/box/new", ofAccount("srt", "o", "sp", "w"), put, 201, ""},

		{"GET", "/box/blob", ofBox("r"), nil, 200, ""},
		{"GET", "/box" + box + "&comp=list", ofBox("l"), nil, 200, ""},
		{"GET", "/box" + box + "&comp=list", ofBox("r"), nil, 403, permission},
		{"GET", "/box" + box, ofBox("r"), nil, 403, scope},
		{"PUT", "/box" + box + "&comp=lease", ofBox("w"), acquire, 403, scope},
		{"GET", "?comp=list", serviceSignature(t, "//", "", "sv", today, "sr", "b", "sp", "l"), nil, 403, scope},
		{"GET", "/box/blob", serviceSignature(t, "/box/other", "", "sv", today, "sr", "b", "sp", "r"), nil, 403, failed},
		{"GET", "/box/blob", serviceSignature(t, "/box/blob", "", "sv", today, "sr", "x", "sp", "r"), nil, 403, failed},
		{"GET", "/box/blob", serviceSignature(t, "/box/blob", "", "sv", today, "sr", "b", "sp", "r", "si", "policy"), nil, 403, failed},
		{"GET", "/box" + box + "&comp=list", serviceSignature(t, "/box/", "", "sv", today, "sr", "b", "sp", "l"), nil, 403, scope},
	} {
		c, _ := signedClient(t)
		if o.code == "UnauthorizedBlobOverwrite" {
			c.must(201, "PUT", account+o.target+"?"+o.signature, o.h, "")
		}
		if o.status == 202 {
			c.must(201, "PUT", account+o.target+"&"+ofAccount("srt", "co", "sp", "w"), acquire, "")
		}
		sep := "?"
		if strings.Contains(o.target, "?") {
			sep = "&"
		}
		if a := c.do(o.method, account+o.target+sep+o.signature, o.h, ""); a.status != o.status || a.code() != o.code {
			t.Errorf("%s %s with %s: %d %s, want %d %s", o.method, o.target, o.signature, a.status, a.code(), o.status, o.code)
		}
	}
}

// The source of a copy needs a signature of its own, unless the owner of the account copies.
func TestCopyByAnother(t *testing.T) {
	c, _ := signedClient(t)
	write, read := accountSignature(t, "sv", today, "ss", "b", "srt", "o", "sp", "w"), accountSignature(t, "sv", today, "ss", "b", "srt", "o", "sp", "r")
	for _, o := range []struct {
		source, code string
		status       int
	}{
		{path, "NoAuthenticationInformation", 401},
		{path + "?" + write, "AuthorizationPermissionMismatch", 403},
		{path + "?" + read, "", 202},
	} {
		a := c.do("PUT", account+"/box/copy?"+write, []string{"x-ms-copy-source", "http://127.0.0.1" + o.source}, "")
		if a.status != o.status || a.code() != o.code {
			t.Errorf("%s: %d %s, want %d %s", o.source, a.status, a.code(), o.status, o.code)
		}
	}
}

// The server verifies a signature in the address of a copy's source, even if the account's owner copies.
func TestSignatureOfACopySource(t *testing.T) {
	c, _ := signedClient(t)
	c.h.Clock().Step(time.Second)
	copyFrom := func(query string) answer {
		const date = "Thu, 26 Jan 2012 23:30:18 GMT"
		source := "http://127.0.0.1" + path + query
		text := "PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-copy-source:" + source + "\nx-ms-date:" + date + "\nx-ms-version:" + today + "\n/devstoreaccount1" + account + "/box/copy"
		return c.do("PUT", account+"/box/copy", []string{"x-ms-version", today, "x-ms-date", date, "x-ms-copy-source", source, "Authorization", "SharedKey devstoreaccount1:" + sign(t, text)}, "")
	}
	read := []string{"sv", today, "ss", "b", "srt", "o", "sp", "r"}
	for _, o := range []struct {
		query, code string
		status      int
	}{
		{"", "", 202},
		{"?" + accountSignature(t, read...), "", 202},
		{"?" + serviceSignature(t, "/box/blob", "", "sv", today, "sr", "b", "sp", "r"), "", 202},
		{"?" + accountSignature(t, append(read, "se", "2012-01-26T23:30:19Z")...), "AuthenticationFailed", 403},
		{"?" + accountSignature(t, "sv", today, "ss", "b", "srt", "o", "sp", "w"), "AuthorizationPermissionMismatch", 403},
		{"?" + serviceSignature(t, "/box/other", "", "sv", today, "sr", "b", "sp", "r"), "AuthenticationFailed", 403},
		{"?sv=" + today + "&sig=bm9uZQ%3D%3D", "AuthenticationFailed", 403},
	} {
		if a := copyFrom(o.query); a.status != o.status || a.code() != o.code {
			t.Errorf("source %q: %d %s, want %d %s", o.query, a.status, a.code(), o.status, o.code)
		}
	}
}

// The server verifies the signature of the headers and the path as the client sent them. It accepts both
// orders in which clients sort header names.
func TestSharedKeyText(t *testing.T) {
	const (
		date = "Thu, 26 Jan 2012 23:30:18 GMT"
		none = "\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:" + date // all other headers that are signed are missing
	)
	c, _ := signedClient(t)
	for name, o := range map[string]struct {
		version string
		target  string
		h       []string
		text    string // the signed text after the method
		lite    bool
		status  int
	}{
		"by bytes":                        {today, path, []string{"x-ms-meta-ab", "1", "x-ms-meta-a-b", "2"}, none + "\nx-ms-meta-a-b:2\nx-ms-meta-ab:1\nx-ms-version:" + today + "\n/devstoreaccount1" + path, false, 200},
		"by words":                        {today, path, []string{"x-ms-meta-a0", "1", "x-ms-meta-a_", "2"}, none + "\nx-ms-meta-a_:2\nx-ms-meta-a0:1\nx-ms-version:" + today + "\n/devstoreaccount1" + path, false, 200},
		"by bytes, digits":                {today, path, []string{"x-ms-meta-a0", "1", "x-ms-meta-a_", "2"}, none + "\nx-ms-meta-a0:1\nx-ms-meta-a_:2\nx-ms-version:" + today + "\n/devstoreaccount1" + path, false, 200},
		"conditions and range":            {today, path, []string{"If-Match", "*", "Range", "bytes=0-1"}, "\n\n\n\n\n\n\n\n*\n\n\nbytes=0-1\nx-ms-date:" + date + "\nx-ms-version:" + today + "\n/devstoreaccount1" + path, false, 206},
		"a range that is not signed":      {today, path, []string{"Range", "bytes=0-1"}, none + "\nx-ms-version:" + today + "\n/devstoreaccount1" + path, false, 403},
		"Date beside x-ms-date":           {today, path, []string{"Date", date}, none + "\nx-ms-version:" + today + "\n/devstoreaccount1" + path, false, 200},
		"parameters":                      {today, account + "/box?restype=container&comp=list&include=snapshots&Include=metadata&prefix=a+b", nil, none + "\nx-ms-version:" + today + "\n/devstoreaccount1" + account + "/box\ncomp:list\ninclude:metadata,snapshots\nprefix:a b\nrestype:container", false, 200},
		"a path as it was sent":           {today, account + "/box/%62lob", nil, none + "\nx-ms-version:" + today + "\n/devstoreaccount1" + account + "/box/%62lob", false, 200},
		"lite signs comp":                 {today, account + "/box?restype=container&comp=list", nil, "\n\n\n\nx-ms-date:" + date + "\nx-ms-version:" + today + "\n/devstoreaccount1" + account + "/box?comp=list", true, 200},
		"lite without comp":               {today, account + "/box?restype=container&comp=list", nil, "\n\n\n\nx-ms-date:" + date + "\nx-ms-version:" + today + "\n/devstoreaccount1" + account + "/box", true, 403},
		"no length, once signed as 0":     {"2014-02-14", path, []string{"Content-Length", "0"}, "\n\n\n0\n\n\n\n\n\n\n\n\nx-ms-date:" + date + "\nx-ms-version:2014-02-14\n/devstoreaccount1" + path, false, 200},
		"no length, since signed as none": {"2015-02-21", path, []string{"Content-Length", "0"}, none + "\nx-ms-version:2015-02-21\n/devstoreaccount1" + path, false, 200},
		"an empty header, once left out":  {"2015-12-11", path, []string{"x-ms-foo", ""}, none + "\nx-ms-version:2015-12-11\n/devstoreaccount1" + path, false, 200},
		"an empty header, since signed":   {"2016-05-31", path, []string{"x-ms-foo", ""}, none + "\nx-ms-foo:\nx-ms-version:2016-05-31\n/devstoreaccount1" + path, false, 200},
		"an empty header, not signed":     {"2016-05-31", path, []string{"x-ms-foo", ""}, none + "\nx-ms-version:2016-05-31\n/devstoreaccount1" + path, false, 403},
	} {
		scheme := "SharedKey "
		if o.lite {
			scheme = "SharedKeyLite "
		}
		h := append([]string{"x-ms-version", o.version, "x-ms-date", date, "Authorization", scheme + "devstoreaccount1:" + sign(t, "GET"+o.text)}, o.h...)
		if a := c.do("GET", o.target, h, ""); a.status != o.status {
			t.Errorf("%s: %d %s, want %d", name, a.status, a.body, o.status)
		}
	}
	// A proxy sends the whole address, but its path is signed.
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+path, nil)
	r.RequestURI = "http://127.0.0.1" + path
	r.Header.Set("x-ms-date", date)
	r.Header.Set("Authorization", "SharedKey devstoreaccount1:"+sign(t, "GET"+none+"\n/devstoreaccount1"+path))
	w := httptest.NewRecorder()
	if c.h.ServeHTTP(w, r); w.Code != 200 {
		t.Errorf("absolute form: %d %s", w.Code, w.Body)
	}
}
