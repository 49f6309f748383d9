package azlease

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/fencedlease/lease"
)

// A canned service answers every request with one error.
type canned struct {
	status int
	code   string
}

func (c canned) Do(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: c.status, Status: http.StatusText(c.status), Header: http.Header{"X-Ms-Error-Code": {c.code}}, Body: http.NoBody, Request: r}, nil
}

// If no retry can help, because the credential, the container or the kind of the blob is wrong, the
// error is permanent and says what to do. No other error is permanent.
func TestAdvice(t *testing.T) {
	for _, c := range []struct {
		canned
		permanent bool
		says      string
	}{
		{canned{409, "InvalidBlobType"}, true, "of a kind that cannot be written"},
		{canned{409, "BlobImmutableDueToPolicy"}, true, "immutable"},
		{canned{409, "BlobArchived"}, true, "rehydrated"},
		{canned{400, "InvalidOperation"}, true, "snapshot"},
		{canned{409, "ResourceTypeMismatch"}, true, "a folder has this name"},
		{canned{404, "ContainerNotFound"}, true, "create it"},
		{canned{409, "ContainerBeingDeleted"}, true, "being deleted"},
		{canned{403, "AuthorizationPermissionMismatch"}, true, "Storage Blob Data Contributor"},
		{canned{403, "SomethingNew"}, true, "Storage Blob Data Contributor"},
		{canned{401, "NoAuthenticationInformation"}, true, "no credential"},
		{canned{500, "InternalError"}, false, "500 InternalError"},
		{canned{503, "ServerBusy"}, false, "503 ServerBusy"},
		{canned{429, ""}, false, "429"},
	} {
		client, err := container.NewClientWithNoCredential("http://account.test/box?sig=secret", &container.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: c.canned}})
		if err != nil {
			t.Fatal(err)
		}
		leases, err := New(client, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, req := range []lease.Request{{Action: lease.ActionRead}, {Action: lease.ActionRenew, ID: lease.ID{1}}, {Action: lease.ActionAcquire, Proposed: lease.ID{1}, Duration: time.Minute}} {
			_, err := leases.Do(t.Context(), "job", req)
			var permanent *lease.PermanentError
			if err == nil || errors.As(err, &permanent) != c.permanent || lease.CodeOf(err) != 0 {
				t.Fatalf("%v, answered %d %s: %v", req.Action, c.status, c.code, err)
			}
			if !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "http://account.test/box/job") {
				t.Errorf("%v, answered %d %s: %v, without the blob or %q", req.Action, c.status, c.code, err, c.says)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("%v, answered %d %s: %v, with the secret", req.Action, c.status, c.code, err)
			}
		}
	}
}

// Each error code with which the service refuses an action has a Code that means a refusal.
func TestRefusals(t *testing.T) {
	for name, code := range refusalCodes {
		if !code.Refusal() {
			t.Errorf("%s is %v, which is no refusal", name, code)
		}
		if _, ok := advice[name]; ok {
			t.Errorf("%s is a refusal and permanent", name)
		}
	}
}
