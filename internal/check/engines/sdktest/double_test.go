package sdktest

import (
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"

	"github.com/fencedlease/lease/blobtest"
)

const (
	idA = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
	idB = "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"
	idC = "cccccccc-cccc-4ccc-8ccc-cccccccccccc"
)

var ids = map[string]string{"A": idA, "B": idB, "C": idC}

// startDouble starts a server whose clock the test moves.
func startDouble(t testing.TB, o *blobtest.Options) *blobtest.Server {
	t.Helper()
	srv, err := blobtest.NewServer(nil, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	return srv
}

// sdk makes a client of the Azure SDK that does not retry.
func sdk(t testing.TB, srv *blobtest.Server) *azblob.Client {
	t.Helper()
	cred, err := azblob.NewSharedKeyCredential(srv.Account, srv.Key)
	if err != nil {
		t.Fatal(err)
	}
	client, err := azblob.NewClientWithSharedKeyCredential(srv.URL, cred, &azblob.ClientOptions{
		ClientOptions: azcore.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// signature returns a shared access signature of an account, with all permissions, valid for a day.
func signature(t testing.TB, account, key string) string {
	t.Helper()
	cred, err := azblob.NewSharedKeyCredential(account, key)
	if err != nil {
		t.Fatal(err)
	}
	q, err := sas.AccountSignatureValues{
		ExpiryTime:    time.Now().UTC().Add(24 * time.Hour),
		Permissions:   (&sas.AccountPermissions{Read: true, Write: true, Delete: true, List: true, Add: true, Create: true}).String(),
		ResourceTypes: (&sas.AccountResourceTypes{Service: true, Container: true, Object: true}).String(),
	}.SignWithSharedKey(cred)
	if err != nil {
		t.Fatal(err)
	}
	return q.Encode()
}
