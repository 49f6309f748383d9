package azuretest

import (
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
)

// Every error names the blob or the container and says what to do. It is permanent if no retry can help.
func TestErrors(t *testing.T) {
	d := newDouble(t, nil)
	for what, value := range map[string]string{"epoch": "many", "holder": "me", "owner": "%zz", "duration": "14s"} {
		do(t, d.open(t), what, acquire(idA, 15*time.Second), 0)
		do(t, d.open(t), what, release(idA), 0)
		edit(t, d.sdk(t), what, "lease"+what, value, lease.ID{})
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // no server answers at this address
	unreachable := "http://" + l.Addr().String() + "/" + blobtest.DefaultAccount + "/" + box
	good := d.sdk(t)
	wrong, err := newClient(d.url(), "d3Jvbmc=", d.transport())
	if err != nil {
		t.Fatal(err)
	}
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
		"wrong key":         {wrong, "job", true, 0, []string{"/box/job", "403 AuthenticationFailed", "check the key"}},
		"corrupt epoch":     {good, "epoch", false, lease.ErrCorrupt, []string{`"epoch"`, `leaseepoch = "many"`, "remove the names leaseepoch"}},
		"corrupt holder":    {good, "holder", false, lease.ErrCorrupt, []string{`"holder"`, `leaseholder = "me"`}},
		"corrupt owner":     {good, "owner", false, lease.ErrCorrupt, []string{`"owner"`, `leaseowner = "%zz"`}},
		"corrupt duration":  {good, "duration", false, lease.ErrCorrupt, []string{`"duration"`, `leaseduration = "14s"`, "15s to 60s"}},
		"the floor's name":  {good, azlease.FloorBlob, false, lease.ErrName, []string{`"lease-floor"`, "floor of the tokens"}},
	} {
		t.Run(what, func(t *testing.T) {
			_, err := open(t, c.client).Do(t.Context(), c.name, acquire(idB, time.Minute))
			says(t, err, nil, c.says...)
			if permanent(err) != c.permanent || lease.CodeOf(err) != c.code || strings.Contains(err.Error(), "\n") {
				t.Errorf("code %v, permanent %v: %v", lease.CodeOf(err), permanent(err), err)
			}
			if c.client == elsewhere && !bloberror.HasCode(err, bloberror.ContainerNotFound) {
				t.Errorf("%v does not unwrap to the error of the SDK", err)
			}
			if d.current("duration").State.Locked() {
				t.Error("a lease without a token was not released")
			}
		})
	}
	// Once the metadata is removed, as the error says, the lease works again, and tokens continue to rise.
	if _, err := good.NewBlobClient("epoch").SetMetadata(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	do(t, open(t, good), "epoch", acquire(idB, time.Minute), 0)
	// A corrupt record does not end a list.
	listed := map[lease.Code]int{}
	for _, err := range open(t, good).List(t.Context(), "") {
		listed[lease.CodeOf(err)]++
	}
	if len(listed) != 2 || listed[lease.ErrCorrupt] != 3 || listed[0] != 1 {
		t.Errorf("listed %v, want 3 corrupt leases and one sound lease", listed)
	}
}

// The permissions in the README are enough, and each of them is needed.
func TestPermissions(t *testing.T) {
	d := newDouble(t, nil)
	leases := func(p sas.ContainerPermissions) *azlease.Container {
		q, err := d.sdk(t).GetSASURL(p, time.Now().Add(24*time.Hour), nil)
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
		acquire(idA, time.Minute), renew(idA), change(idA, idB), {Action: lease.ActionRead}, {Action: lease.ActionWrite, ID: idB},
		{Action: lease.ActionBreak, Period: lease.Grace(time.Minute)}, release(idB), acquire(idA, time.Minute),
	} {
		do(t, all, "job", req, 0)
	}
	for e, err := range all.List(t.Context(), "") {
		if err != nil || e.Name != "job" {
			t.Error(e, err)
		}
	}
	for what, p := range map[string]sas.ContainerPermissions{
		"acquire without w": {Read: true, List: true},
		"acquire without r": {Write: true, List: true},
		"list without l":    {Read: true, Write: true},
	} {
		var err error
		if p.List {
			_, err = leases(p).Do(t.Context(), "other", acquire(idB, time.Minute))
		} else {
			for _, err = range leases(p).List(t.Context(), "") {
			}
		}
		if says(t, err, nil, "r and w"); !permanent(err) || strings.Contains(err.Error(), "sig=") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
