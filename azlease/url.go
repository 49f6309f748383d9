package azlease

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/open"
)

// A program that imports this package can open azblob:// URLs with [open.Store]. If the URL contains no
// account and the variable AZURE_STORAGE_CONNECTION_STRING is set, the credentials are taken from this
// variable. Otherwise the key is taken from AZURE_STORAGE_KEY, and the account from the URL or from
// AZURE_STORAGE_ACCOUNT.
func init() { open.Register("azblob", "azblob://[ACCOUNT/]CONTAINER", openURL) }

type opened struct{ *Container }

func (opened) Close() error { return nil }

func openURL(_ context.Context, url string) (open.Leases, error) {
	account, name, both := strings.Cut(strings.TrimPrefix(url, "azblob://"), "/")
	if !both {
		account, name = os.Getenv("AZURE_STORAGE_ACCOUNT"), account
	}
	o := &container.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: NewTransport(nil)}}
	var client *container.Client
	var err error
	if conn := os.Getenv("AZURE_STORAGE_CONNECTION_STRING"); conn != "" && !both {
		client, err = container.NewClientFromConnectionString(conn, name, o)
	} else {
		if account == "" || os.Getenv("AZURE_STORAGE_KEY") == "" {
			return nil, &open.URLError{Scheme: "azblob", Err: errors.New("set AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY")}
		}
		var key *container.SharedKeyCredential
		if key, err = container.NewSharedKeyCredential(account, os.Getenv("AZURE_STORAGE_KEY")); err == nil {
			client, err = container.NewClientWithSharedKeyCredential("https://"+account+".blob.core.windows.net/"+name, key, o)
		}
	}
	if err != nil {
		return nil, lease.Permanent(err)
	}
	s, err := New(client, nil)
	if err != nil {
		return nil, err
	}
	return opened{s}, nil
}
