package sdktest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
)

// A token is a credential that no service issued.
type token struct{}

func (token) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "anything", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// The SDK sends a token over HTTPS only. With -tls and -allow-anyone, a client with a token acquires a lease.
func TestGoSDKWithToken(t *testing.T) {
	p := startProgram(t, "-tls", "-allow-anyone", "-container", "box")
	pem, err := os.ReadFile(p.certificate)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		t.Fatalf("no certificate: %s", pem)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.CloseIdleConnections()
	_, endpoint, _ := strings.Cut(p.connection, "BlobEndpoint=")
	client, err := azblob.NewClient(strings.TrimSuffix(endpoint, ";"), token{}, &azblob.ClientOptions{ClientOptions: azcore.ClientOptions{
		Transport: &http.Client{Transport: transport}, Retry: policy.RetryOptions{MaxRetries: -1},
	}})
	if err != nil {
		t.Fatal(err)
	}
	box := client.ServiceClient().NewContainerClient("box")
	l, err := lease.NewContainerClient(box, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.AcquireLease(t.Context(), 15, nil); err != nil {
		t.Fatal(err)
	}
	info, err := client.ServiceClient().GetAccountInfo(t.Context(), nil)
	if err != nil || string(*info.SKUName) != "Standard_LRS" {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := client.ServiceClient().GetProperties(t.Context(), nil); err != nil {
		t.Error(err)
	}
}
