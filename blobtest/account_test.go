package blobtest_test

import (
	"strings"
	"testing"

	"github.com/fencedlease/lease/blobtest"
)

// A client can send Get Account Information to the account, and to any address in the account.
func TestAccountInformation(t *testing.T) {
	c := newClient(t, blobtest.Options{})
	for _, target := range []string{account, account + "/", account + "/box", path, account + "/none/none"} {
		for _, method := range []string{"GET", "HEAD"} {
			a := c.must(200, method, target+"?restype=account&comp=properties", nil, "")
			for name, want := range map[string]string{"x-ms-sku-name": "Standard_LRS", "x-ms-account-kind": "StorageV2", "x-ms-is-hns-enabled": "false"} {
				if got := a.header.Get(name); got != want {
					t.Errorf("%s %s: %s: %q, want %q", method, target, name, got, want)
				}
			}
			if a.body != "" {
				t.Errorf("%s %s: body %q", method, target, a.body)
			}
		}
	}
	// Any shared access signature of the resource is enough, whatever its permissions are.
	signed, _ := signedClient(t)
	const question = "?restype=account&comp=properties&"
	ofAccount := func(srt string) string { return accountSignature(t, "sv", today, "ss", "b", "srt", srt, "sp", "l") }
	for _, o := range []struct {
		target string
		status int
	}{
		{account + question + ofAccount("s"), 200},
		{account + question + ofAccount("co"), 403},
		{account + "/box" + question + ofAccount("c"), 200},
		{path + question + ofAccount("o"), 200},
		{path + question + ofAccount("s"), 403},
		{path + question + serviceSignature(t, "/box/blob", "", "sv", today, "sr", "b", "sp", "r"), 200},
		{account + "/box" + question + serviceSignature(t, "/box", "", "sv", today, "sr", "c", "sp", "l"), 200},
		{account + question + serviceSignature(t, "/", "", "sv", today, "sr", "c", "sp", "l"), 403},
		{account + question + "x=y", 401},
	} {
		signed.must(o.status, "GET", o.target, nil, "")
	}
}

// Containers with a dollar sign in their name can be created. The address of a blob in $root needs no
// container. $logs is listed only with include=system.
func TestSystemContainers(t *testing.T) {
	c := newClient(t, blobtest.Options{})
	for _, name := range []string{"$root", "$web", "$logs", "%24web2"} {
		status := 201
		if name == "%24web2" {
			status = 400
		}
		if a := c.must(status, "PUT", account+"/"+name+"?restype=container", nil, ""); status == 400 && a.code() != "InvalidResourceName" {
			t.Error(a.code())
		}
	}
	c.must(409, "PUT", account+"/%24root?restype=container", nil, "")
	c.must(201, "PUT", account+"/alone", []string{"x-ms-blob-type", "BlockBlob"}, "of the root")
	if a := c.must(200, "GET", account+"/$root/alone", nil, ""); a.body != "of the root" {
		t.Errorf("%q", a.body)
	}
	acquire := []string{"x-ms-lease-action", "acquire", "x-ms-lease-duration", "15"}
	c.must(201, "PUT", account+"/alone?comp=lease", acquire, "")
	if a := c.must(409, "PUT", account+"/$root/alone?comp=lease", acquire, ""); a.code() != "LeaseAlreadyPresent" {
		t.Error(a.code())
	}
	c.must(201, "PUT", account+"/$web/index.html", []string{"x-ms-blob-type", "BlockBlob"}, "")
	c.must(201, "PUT", account+"/$web?restype=container&comp=lease", acquire, "")
	for query, want := range map[string]string{"": "$root $web box", "&include=system": "$logs $root $web box", "&include=metadata": "$root $web box"} {
		var names []string
		for _, it := range c.list(account + "?comp=list" + query).Containers {
			names = append(names, it.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("list%s: %s, want %s", query, got, want)
		}
	}
	c.must(202, "DELETE", account+"/$logs?restype=container", nil, "")
}

// The server accepts, stores and returns an access tier and public access, which have no other effect.
func TestTiersAndPublicAccess(t *testing.T) {
	c := newClient(t, blobtest.Options{})
	tier := func(target string) string { return c.must(200, "HEAD", target, nil, "").header.Get("x-ms-access-tier") }
	const copied, blocks = account + "/box/copied", account + "/box/blocks"
	c.put(201, "x-ms-access-tier", "Cool")
	c.must(202, "PUT", copied, []string{"x-ms-copy-source", "http://127.0.0.1" + path, "x-ms-access-tier", "hot"}, "")
	c.must(201, "PUT", blocks+"?comp=blocklist", []string{"x-ms-access-tier", "Cold"}, "<BlockList></BlockList>")
	c.must(201, "PUT", account+"/box/plain", []string{"x-ms-blob-type", "BlockBlob"}, "")
	for target, want := range map[string]string{path: "Cool", copied: "Hot", blocks: "Cold", account + "/box/plain": ""} {
		if got := tier(target); got != want {
			t.Errorf("%s: tier %q, want %q", target, got, want)
		}
	}
	c.must(200, "PUT", path+"?comp=properties", []string{"x-ms-blob-content-type", "text/html"}, "")
	c.must(200, "PUT", path+"?comp=metadata", nil, "")
	if got := tier(path); got != "Cool" {
		t.Errorf("after its properties were set: tier %q, want Cool", got)
	}
	if a := c.must(200, "GET", account+"/box?restype=container&comp=list&prefix=blob", nil, ""); !strings.Contains(a.body, "<AccessTier>Cool</AccessTier>") {
		t.Error(a.body)
	}
	c.must(202, "PUT", copied, []string{"x-ms-copy-source", "http://127.0.0.1" + path}, "")
	if got := tier(copied); got != "" {
		t.Errorf("a copy without a tier: %q", got)
	}
	if a := c.put(400, "x-ms-access-tier", "Tepid"); a.code() != "InvalidHeaderValue" || a.message(t).HeaderName != "x-ms-access-tier" {
		t.Error(a.body)
	}

	for _, access := range []string{"container", "blob"} {
		box := account + "/public-" + access + "?restype=container"
		c.must(201, "PUT", box, []string{"x-ms-blob-public-access", access}, "")
		c.must(200, "PUT", box+"&comp=metadata", nil, "")
		if got := c.must(200, "HEAD", box, nil, "").header.Get("x-ms-blob-public-access"); got != access {
			t.Errorf("public access %q, want %q", got, access)
		}
		if a := c.must(200, "GET", account+"?comp=list&prefix=public-"+access, nil, ""); !strings.Contains(a.body, "<PublicAccess>"+access+"</PublicAccess>") {
			t.Error(a.body)
		}
	}
	if a := c.must(400, "PUT", account+"/another?restype=container", []string{"x-ms-blob-public-access", "everybody"}, ""); a.code() != "InvalidHeaderValue" {
		t.Error(a.code())
	}
}
