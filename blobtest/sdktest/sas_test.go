package sdktest

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"

	"github.com/fencedlease/lease/blobtest"
)

// A signed is a server with a container, a blob in it and a snapshot of the blob.
type signed struct {
	t        *testing.T
	srv      *blobtest.Server
	cred     *azblob.SharedKeyCredential
	snapshot string
}

func newSigned(t *testing.T) *signed {
	srv := startDouble(t, nil)
	cred, err := azblob.NewSharedKeyCredential(srv.Account, srv.Key)
	if err != nil {
		t.Fatal(err)
	}
	s := &signed{t: t, srv: srv, cred: cred}
	all := signature(t, srv.Account, srv.Key)
	s.want("", 201, "PUT", "/box?restype=container", all)
	s.want("", 201, "PUT", "/box/blob", all, "x-ms-blob-type", "BlockBlob")
	s.snapshot = s.want("", 201, "PUT", "/box/blob?comp=snapshot", all).Get("x-ms-snapshot")
	return s
}

// want sends a request with a signature and compares its outcome.
func (s *signed) want(code string, status int, method, target, signature string, h ...string) http.Header {
	s.t.Helper()
	sd := side{base: s.srv.URL, sas: signature}
	a, err := sd.do(s.t.Context(), op{method: method, target: target, header: h})
	if err != nil {
		s.t.Fatal(err)
	}
	if a.status != status || a.code() != code {
		s.t.Errorf("%s %s with %s: %d %s, want %d %s\n%s", method, target, signature, a.status, a.code(), status, code, a.body)
	}
	return a.header
}

func (s *signed) account(v sas.AccountSignatureValues) string {
	s.t.Helper()
	if v.ExpiryTime.IsZero() {
		v.ExpiryTime = s.srv.Clock().Now().Add(time.Hour)
	}
	q, err := v.SignWithSharedKey(s.cred)
	if err != nil {
		s.t.Fatal(err)
	}
	return q.Encode()
}

func (s *signed) blob(v sas.BlobSignatureValues) string {
	s.t.Helper()
	if v.ExpiryTime.IsZero() {
		v.ExpiryTime = s.srv.Clock().Now().Add(time.Hour)
	}
	q, err := v.SignWithSharedKey(s.cred)
	if err != nil {
		s.t.Fatal(err)
	}
	return q.Encode()
}

var (
	acquireHeaders = []string{"x-ms-lease-action", "acquire", "x-ms-lease-duration", "15", "x-ms-proposed-lease-id", idA}
	breakHeaders   = []string{"x-ms-lease-action", "break"}
)

// The server checks the permissions, resource types, times, protocol and address of account
// signatures that the SDK makes.
func TestAccountSignatures(t *testing.T) {
	s := newSigned(t)
	const permission, resource = "AuthorizationPermissionMismatch", "AuthorizationResourceTypeMismatch"
	read := s.account(sas.AccountSignatureValues{Permissions: "r", ResourceTypes: "o"})
	s.want("", 200, "GET", "/box/blob", read)
	s.want(permission, 403, "PUT", "/box/blob?comp=lease", read, acquireHeaders...)
	s.want(permission, 403, "PUT", "/box/blob", read, "x-ms-blob-type", "BlockBlob")
	s.want(permission, 403, "DELETE", "/box/blob", read)
	s.want(resource, 403, "GET", "/box?restype=container", read)

	write := s.account(sas.AccountSignatureValues{Permissions: "w", ResourceTypes: "co"})
	s.want("", 201, "PUT", "/box/blob?comp=lease", write, acquireHeaders...)
	s.want("", 202, "PUT", "/box/blob?comp=lease", write, breakHeaders...)
	s.want("", 201, "PUT", "/box?restype=container&comp=lease", write, acquireHeaders...)
	s.want(permission, 403, "GET", "/box/blob", write)
	s.want(resource, 403, "GET", "?comp=list", write)

	remove := s.account(sas.AccountSignatureValues{Permissions: "d", ResourceTypes: "o"})
	s.want("", 202, "PUT", "/box/blob?comp=lease", remove, breakHeaders...)
	s.want(permission, 403, "PUT", "/box/blob?comp=lease", remove, acquireHeaders...)

	create := s.account(sas.AccountSignatureValues{Permissions: "c", ResourceTypes: "o"})
	s.want("", 201, "PUT", "/box/new", create, "x-ms-blob-type", "BlockBlob")
	s.want("UnauthorizedBlobOverwrite", 403, "PUT", "/box/new", create, "x-ms-blob-type", "BlockBlob")

	// The source of a copy needs a signature of its own.
	s.want("NoAuthenticationInformation", 401, "PUT", "/box/copy", write, "x-ms-copy-source", s.srv.URL+"/box/blob")
	s.want(permission, 403, "PUT", "/box/copy", write, "x-ms-copy-source", s.srv.URL+"/box/blob?"+write)
	s.want("", 202, "PUT", "/box/copy", write, "x-ms-copy-source", s.srv.URL+"/box/blob?"+read)

	for _, v := range []sas.AccountSignatureValues{
		{Permissions: "r", ResourceTypes: "o", StartTime: s.srv.Clock().Now().Add(time.Minute)},
		{Permissions: "r", ResourceTypes: "o", ExpiryTime: s.srv.Clock().Now().Add(-time.Minute)},
	} {
		s.want("AuthenticationFailed", 403, "GET", "/box/blob", s.account(v))
	}
	s.want("AuthorizationProtocolMismatch", 403, "GET", "/box/blob", s.account(sas.AccountSignatureValues{Permissions: "r", ResourceTypes: "o", Protocol: sas.ProtocolHTTPS}))
	s.want("", 200, "GET", "/box/blob", s.account(sas.AccountSignatureValues{Permissions: "r", ResourceTypes: "o", IPRange: sas.IPRange{Start: []byte{127, 0, 0, 1}}}))
	s.want("AuthorizationSourceIPMismatch", 403, "GET", "/box/blob", s.account(sas.AccountSignatureValues{Permissions: "r", ResourceTypes: "o", IPRange: sas.IPRange{Start: []byte{10, 0, 0, 1}, End: []byte{10, 0, 0, 9}}}))

	s.want("AuthenticationFailed", 403, "GET", "/box/blob", strings.Replace(read, "sp=r", "sp=rw", 1))
	s.want("AuthenticationFailed", 403, "GET", "/box/blob", strings.Replace(read, "sig=", "sig=A", 1))
	s.want("NoAuthenticationInformation", 401, "GET", "/box/blob", "")
}

// A signature expires by the clock that the test moves.
func TestSignaturesExpire(t *testing.T) {
	s := newSigned(t)
	read := s.account(sas.AccountSignatureValues{Permissions: "r", ResourceTypes: "o"})
	s.srv.Advance(time.Hour - 2*time.Second)
	s.want("", 200, "GET", "/box/blob", read)
	s.srv.Advance(2 * time.Second)
	s.want("AuthenticationFailed", 403, "GET", "/box/blob", read)
}

// The server checks service signatures that the SDK makes for a container, a blob and a snapshot.
func TestServiceSignatures(t *testing.T) {
	s := newSigned(t)
	const permission, scope, failed = "AuthorizationPermissionMismatch", "AuthorizationFailure", "AuthenticationFailed"
	all := sas.BlobPermissions{Read: true, Write: true, Delete: true, Create: true, Add: true}
	ofBlob := s.blob(sas.BlobSignatureValues{ContainerName: "box", BlobName: "blob", Permissions: all.String()})
	s.want("", 201, "PUT", "/box/blob?comp=lease", ofBlob, acquireHeaders...)
	s.want("", 200, "GET", "/box/blob", ofBlob)
	s.want(failed, 403, "GET", "/box/other", ofBlob)
	s.want(failed, 403, "DELETE", "/box?restype=container", ofBlob) // the signature is for another name
	readBlob := s.blob(sas.BlobSignatureValues{ContainerName: "box", BlobName: "blob", Permissions: "r"})
	s.want("", 200, "GET", "/box/blob", readBlob)
	s.want(permission, 403, "PUT", "/box/blob?comp=lease", readBlob, breakHeaders...)

	ofBox := s.blob(sas.BlobSignatureValues{ContainerName: "box", Permissions: (&sas.ContainerPermissions{Read: true, Write: true, Delete: true, List: true}).String()})
	s.want("", 200, "GET", "/box/blob", ofBox)
	s.want("", 200, "GET", "/box?restype=container&comp=list", ofBox)
	s.want("", 202, "PUT", "/box/blob?comp=lease", ofBox, breakHeaders...)
	s.want(scope, 403, "PUT", "/box?restype=container&comp=lease", ofBox, acquireHeaders...)
	s.want(scope, 403, "DELETE", "/box?restype=container", ofBox)
	s.want(failed, 403, "GET", "/another/blob", ofBox)

	at, err := time.Parse("2006-01-02T15:04:05.0000000Z", s.snapshot)
	if err != nil {
		t.Fatal(err)
	}
	ofSnapshot := s.blob(sas.BlobSignatureValues{ContainerName: "box", BlobName: "blob", SnapshotTime: at, Permissions: "r"})
	s.want("", 200, "GET", "/box/blob?snapshot="+s.snapshot, strings.ReplaceAll(ofSnapshot, "snapshot=", "unused="))
}
