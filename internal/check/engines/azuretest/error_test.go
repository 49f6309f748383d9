package azuretest

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/azlease"
	"github.com/fencedlease/lease/blobtest"
	"github.com/fencedlease/lease/leasefault"
)

// Every error names the blob or the container and says what to do. It is permanent if no retry can help.
func TestErrors(t *testing.T) {
	d := newDouble(t, nil)
	put := func(name, key, value string) {
		t.Helper()
		sdk := client(t, d.url(), d.transport())
		must(t, open(t, sdk), name, acquire(idA, 15*time.Second))
		must(t, open(t, sdk), name, release(idA))
		props, err := sdk.NewBlobClient(name).GetProperties(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		meta := map[string]*string{key: &value}
		for k, v := range props.Metadata {
			if !strings.EqualFold(k, key) {
				meta[k] = v
			}
		}
		if _, err := sdk.NewBlobClient(name).SetMetadata(t.Context(), meta, nil); err != nil {
			t.Fatal(err)
		}
	}
	put("epoch", "leaseepoch", "many")
	put("holder", "leaseholder", "me")
	put("owner", "leaseowner", "%zz")
	put("duration", "leaseduration", "14s")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // no server answers at this address
	unreachable := "http://" + l.Addr().String() + "/" + blobtest.DefaultAccount + "/" + box
	good := client(t, d.url(), d.transport())
	elsewhere := client(t, strings.TrimSuffix(d.url(), box)+"elsewhere", d.transport())
	for what, c := range map[string]struct {
		client    *container.Client
		name      string
		permanent bool
		code      lease.Code
		says      []string
	}{
		"unreachable":       {client(t, unreachable, http.DefaultClient), "job", false, 0, []string{unreachable, "no answer", "check the address"}},
		"missing container": {elsewhere, "job", true, 0, []string{"/elsewhere/job", "404 ContainerNotFound", "create it"}},
		"wrong key":         {withKey(t, d, "d3Jvbmc="), "job", true, 0, []string{"/box/job", "403 AuthenticationFailed", "check the key"}},
		"corrupt epoch":     {good, "epoch", false, lease.ErrCorrupt, []string{`"epoch"`, `leaseepoch = "many"`, "remove the names leaseepoch"}},
		"corrupt holder":    {good, "holder", false, lease.ErrCorrupt, []string{`"holder"`, `leaseholder = "me"`}},
		"corrupt owner":     {good, "owner", false, lease.ErrCorrupt, []string{`"owner"`, `leaseowner = "%zz"`}},
		"corrupt duration":  {good, "duration", false, lease.ErrCorrupt, []string{`"duration"`, `leaseduration = "14s"`, "15s to 60s"}},
		"name with a dot":   {good, "a./b", false, lease.ErrName, []string{`"a./b"`, "ends with a dot"}},
		"the floor's name":  {good, azlease.FloorBlob, false, lease.ErrName, []string{`"lease-floor"`, "floor of the tokens"}},
	} {
		t.Run(what, func(t *testing.T) {
			_, err := open(t, c.client).Do(t.Context(), c.name, acquire(idB, time.Minute))
			if err == nil {
				t.Fatal("there is no error")
			}
			text := err.Error()
			for _, want := range c.says {
				if !strings.Contains(text, want) {
					t.Errorf("the error does not say %q: %s", want, text)
				}
			}
			var permanent *lease.PermanentError
			if errors.As(err, &permanent) != c.permanent || lease.CodeOf(err) != c.code || strings.Contains(text, "\n") {
				t.Errorf("code %v, permanent %v: %s", lease.CodeOf(err), !c.permanent, text)
			}
			t.Log(text)
			if d.current("duration").State.Locked() {
				t.Error("a lease without a token was not released")
			}
		})
	}
	// errors.As can still find the error of the SDK.
	_, err = open(t, elsewhere).Do(t.Context(), "job", acquire(idB, time.Minute))
	if !bloberror.HasCode(err, bloberror.ContainerNotFound) {
		t.Errorf("%v does not unwrap to the error of the SDK", err)
	}
	// Once the metadata is removed, as the error says, the lease works again, and tokens continue to rise.
	if _, err := good.NewBlobClient("epoch").SetMetadata(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	must(t, open(t, good), "epoch", acquire(idB, time.Minute))
	// A corrupt record does not end a list.
	corrupt, sound := 0, 0
	for e, err := range open(t, good).List(t.Context(), "") {
		switch {
		case e.Name == "":
			t.Error(err)
		case errors.Is(err, lease.ErrCorrupt):
			corrupt++
		case err == nil:
			sound++
		}
	}
	if corrupt != 3 || sound != 1 {
		t.Errorf("%d corrupt and %d sound leases are listed, want 3 and 1", corrupt, sound)
	}
}

func withKey(t *testing.T, d double, key string) *container.Client {
	t.Helper()
	cred, err := container.NewSharedKeyCredential(blobtest.DefaultAccount, key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := container.NewClientWithSharedKeyCredential(d.url(), cred, &container.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: d.transport()}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The permissions in the README are enough, and each of them is needed.
func TestPermissions(t *testing.T) {
	d := newDouble(t, nil)
	leases := func(p sas.ContainerPermissions) *azlease.Container {
		q, err := client(t, d.url(), d.transport()).GetSASURL(p, time.Now().Add(24*time.Hour), nil)
		if err != nil {
			t.Fatal(err)
		}
		c, err := container.NewClientWithNoCredential(q, &container.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: d.transport()}})
		if err != nil {
			t.Fatal(err)
		}
		return open(t, c)
	}
	all := leases(sas.ContainerPermissions{Read: true, Write: true, List: true})
	for _, req := range []lease.Request{
		acquire(idA, time.Minute), renew(idA), {Action: lease.ActionChange, ID: idA, Proposed: idB}, {Action: lease.ActionRead}, {Action: lease.ActionWrite, ID: idB},
		{Action: lease.ActionBreak, Period: lease.Grace(time.Minute)}, release(idB), acquire(idA, time.Minute),
	} {
		must(t, all, "job", req)
	}
	for e, err := range all.List(t.Context(), "") {
		if err != nil || e.Name != "job" {
			t.Error(e, err)
		}
	}
	for what, f := range map[string]func() error{
		"acquire without w": func() error {
			_, err := leases(sas.ContainerPermissions{Read: true, List: true}).Do(t.Context(), "other", acquire(idB, time.Minute))
			return err
		},
		"acquire without r": func() error {
			_, err := leases(sas.ContainerPermissions{Write: true, List: true}).Do(t.Context(), "other", acquire(idB, time.Minute))
			return err
		},
		"list without l": func() (err error) {
			for _, err = range leases(sas.ContainerPermissions{Read: true, Write: true}).List(t.Context(), "") {
			}
			return err
		},
	} {
		err := f()
		var permanent *lease.PermanentError
		if !errors.As(err, &permanent) || !strings.Contains(err.Error(), "r and w") || strings.Contains(err.Error(), "sig=") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// After a fault of the network, the error is not permanent, and the request is neither granted nor refused.
func TestUnknownOutcomes(t *testing.T) {
	d := newDouble(t, nil)
	leases := open(t, client(t, d.url(), faulty(t, d.transport(), leasefault.From(1, leasefault.Any, leasefault.FailRequest))))
	for _, req := range []lease.Request{acquire(idA, time.Minute), renew(idA), release(idA), {Action: lease.ActionRead}, {Action: lease.ActionWrite},
		{Action: lease.ActionBreak}, {Action: lease.ActionChange, ID: idA, Proposed: idB}} {
		_, err := leases.Do(t.Context(), "job", req)
		var permanent *lease.PermanentError
		if err == nil || lease.CodeOf(err) != 0 || errors.As(err, &permanent) || !errors.Is(err, leasefault.ErrInjected) {
			t.Errorf("%v: %v", req.Action, err)
		}
	}
}
