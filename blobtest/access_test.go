package blobtest_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease/blobtest"
	"github.com/fencedlease/lease/leasefault"
)

// sign signs a text with the emulator's key.
func sign(t testing.TB, text string) string {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(blobtest.DefaultKey)
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// A request with the right signature is admitted. Any other signature is refused.
func TestSharedKey(t *testing.T) {
	h, err := blobtest.NewHandler(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t, h, ""}
	const date = "Thu, 26 Jan 2012 23:30:18 GMT"
	put := func(auth string, more ...string) answer {
		return c.do("PUT", account+"/box?restype=container&timeout=30", append([]string{"Authorization", auth, "x-ms-version", "2012-02-12",
			"x-ms-date", date, "x-ms-meta-b", "2", "x-ms-meta-a", " 1 "}, more...), "")
	}
	text := "PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:" + date + "\nx-ms-meta-a:1\nx-ms-meta-b:2\nx-ms-version:2012-02-12\n" +
		"/devstoreaccount1/devstoreaccount1/box\nrestype:container\ntimeout:30"
	good := "SharedKey devstoreaccount1:" + sign(t, text)
	lite := "SharedKeyLite devstoreaccount1:" + sign(t, "PUT\n\n\n\nx-ms-date:"+date+"\nx-ms-meta-a:1\nx-ms-meta-b:2\nx-ms-version:2012-02-12\n/devstoreaccount1/devstoreaccount1/box")
	for _, o := range []struct {
		auth   string
		status int
		code   string
	}{
		{"", 401, "NoAuthenticationInformation"},
		{"SharedKey", 400, "InvalidAuthenticationInfo"},
		{"SharedKey devstoreaccount1", 400, "InvalidAuthenticationInfo"},
		{"Bearer devstoreaccount1:x", 400, "InvalidAuthenticationInfo"},
		{"SharedKey another:" + sign(t, text), 403, "AuthenticationFailed"},
		{"SharedKey devstoreaccount1:" + sign(t, text+"x"), 403, "AuthenticationFailed"},
		{"SharedKey devstoreaccount1:", 403, "AuthenticationFailed"},
		{"SharedKey devstoreaccount1:%%%", 403, "AuthenticationFailed"},
		{strings.Replace(good, "SharedKey", "SharedKeyLite", 1), 403, "AuthenticationFailed"},
		{good, 201, ""},
		{lite, 409, "ContainerAlreadyExists"},
	} {
		a := put(o.auth)
		if a.status != o.status || a.code() != o.code {
			t.Errorf("%s: %d %s, want %d %s", o.auth, a.status, a.code(), o.status, o.code)
		}
		if o.status == 403 && o.auth == "SharedKey devstoreaccount1:"+sign(t, text+"x") {
			if m := a.message(t); !strings.Contains(m.Detail, "'"+text+"'") {
				t.Errorf("the answer does not say what was signed: %q", m.Detail)
			}
		}
	}
	if a := put(good, "x-ms-meta-c", "3"); a.status != 403 {
		t.Errorf("a header that is not signed: %d", a.status)
	}
	if a := put(good, "Content-Type", "text/plain"); a.status != 403 {
		t.Errorf("a type that is not signed: %d", a.status)
	}
	if a := c.do("PUT", account+"/box?restype=container", []string{"Authorization", good}, ""); a.status != 403 {
		t.Errorf("no date: %d", a.status)
	}
	if a := c.do("HEAD", path, nil, ""); a.status != 401 || a.header.Get("WWW-Authenticate") == "" || a.body != "" {
		t.Errorf("%d %v %q", a.status, a.header, a.body)
	}
}

// A signature is valid from its start time to its expiry time. Its headers replace those of the blob.
func TestServiceSignature(t *testing.T) {
	h, err := blobtest.NewHandler(nil, &blobtest.Options{Clock: leasefault.NewClockAt(start, 0)})
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t, h, ""}
	const date = "Thu, 26 Jan 2012 23:30:18 GMT"
	c.must(201, "PUT", account+"/box?restype=container", []string{"x-ms-date", date, "Authorization",
		"SharedKey devstoreaccount1:" + sign(t, "PUT\n\n\n0"+strings.Repeat("\n", 9)+"x-ms-date:"+date+"\n/devstoreaccount1"+account+"/box\nrestype:container"), "Content-Length", "0"}, "")

	const st, se = "2012-01-26T23:31:00Z", "2012-01-26T23:32:00Z"
	text := strings.Join([]string{"rc", st, se, "/blob" + path, "", "", "", "2020-12-06", "b", "", "", "", "attachment", "", "", "text/plain"}, "\n")
	signed := path + "?sv=2020-12-06&sr=b&rscd=attachment&rsct=text/plain&sp=rc&st=" + st + "&se=" + se + "&sig=" + url.QueryEscape(sign(t, text))
	end, err := time.Parse(time.RFC3339, se)
	if err != nil {
		t.Fatal(err)
	}
	early := end.Add(-time.Minute - 1).Sub(start)
	for _, o := range []struct {
		advance time.Duration
		status  int
	}{{0, 403}, {early, 403}, {1, 201}} {
		h.Clock().Step(o.advance)
		c.must(o.status, "PUT", signed, []string{"x-ms-blob-type", "BlockBlob", "Content-Type", "image/png", "Cache-Control", "no-cache"}, "hello")
	}
	a := c.must(200, "GET", signed, nil, "")
	for name, want := range map[string]string{"Content-Type": "text/plain", "Content-Disposition": "attachment", "Cache-Control": "no-cache"} {
		if got := a.header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	c.must(403, "GET", strings.Replace(signed, "attachment", "inline", 1), nil, "")
	h.Clock().Step(time.Minute - 1)
	c.must(200, "GET", signed, nil, "")
	h.Clock().Step(1)
	c.must(403, "GET", signed, nil, "")
}

// A test can configure several accounts, and the accounts share no data.
func TestAccounts(t *testing.T) {
	h, err := blobtest.NewHandler(nil, &blobtest.Options{AllowAnyone: true, Accounts: map[string]string{"one": "a2V5", "two": "a2V5"}})
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t, h, today}
	c.must(201, "PUT", "/one/box?restype=container", nil, "")
	c.must(201, "PUT", "/two/box?restype=container", nil, "")
	acquire := []string{"x-ms-lease-action", "acquire", "x-ms-lease-duration", "-1"}
	c.must(201, "PUT", "/one/box?restype=container&comp=lease", acquire, "")
	c.must(201, "PUT", "/two/box?restype=container&comp=lease", acquire, "")
	c.must(409, "PUT", "/two/box?restype=container&comp=lease", acquire, "")
	c.must(400, "GET", account+"/box?restype=container", nil, "")
	c.must(201, "PUT", "/one/box/blob", []string{"x-ms-blob-type", "BlockBlob"}, "of one")
	if a := c.must(400, "PUT", "/two/box/blob", []string{"x-ms-copy-source", "http://127.0.0.1/one/box/blob"}, ""); a.code() != "CopyAcrossAccountsNotSupported" {
		t.Error(a.code())
	}
	// The account may also be the first label of the host.
	for _, address := range []string{"one.blob.example/box", "three.blob.example/one/box", "one.example/one/box"} {
		r := httptest.NewRequest("GET", "http://"+address+"?restype=container", nil)
		r.Header.Set("x-ms-version", today)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != 200 || w.Header().Get("x-ms-lease-state") != "leased" {
			t.Errorf("%s: %d %v", address, w.Code, w.Header())
		}
	}
	// If the account is in the host, the endpoint in a list has no account in its path, but the copy
	// source of an old version has.
	send := func(method, target, version string, more ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, target, nil)
		r.Header.Set("x-ms-version", version)
		for i := 0; i < len(more); i += 2 {
			r.Header.Set(more[i], more[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	for host, want := range map[string]string{
		"http://one.blob.example:1":       "http://one.blob.example:1/",
		"https://one.blob.example":        "https://one.blob.example/",
		"http://three.blob.example:1/one": "http://three.blob.example:1/one/",
		"https://127.0.0.1:10000/one":     "https://127.0.0.1:10000/one/",
	} {
		list := send("GET", host+"/box?restype=container&comp=list", today).Body.String()
		if !strings.Contains(list, `ServiceEndpoint="`+want+`"`) {
			t.Errorf("%s: %s", host, list)
		}
		if w := send("PUT", host+"/box/copy", "2011-08-18", "x-ms-copy-source", "/one/box/blob"); w.Code != 201 {
			t.Errorf("%s: %d %s", host, w.Code, w.Body)
		}
	}
}
