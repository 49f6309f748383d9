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

// The server accepts account signatures that the SDK makes, checks what they allow, and refuses them if
// they are altered or, by the clock that the test moves, expired.
func TestAccountSignatures(t *testing.T) {
	s := newSigned(t)
	now := s.srv.Clock().Now()
	read := s.account(sas.AccountSignatureValues{Permissions: "r", ResourceTypes: "o", ExpiryTime: now.Add(time.Hour),
		Protocol: sas.ProtocolHTTPSandHTTP, IPRange: sas.IPRange{Start: []byte{127, 0, 0, 1}}, StartTime: now.Add(-time.Minute)})
	s.want("", 200, "GET", "/box/blob", read)
	s.want("AuthorizationPermissionMismatch", 403, "DELETE", "/box/blob", read)
	s.want("AuthorizationResourceTypeMismatch", 403, "GET", "/box?restype=container", read)
	s.want("AuthenticationFailed", 403, "GET", "/box/blob", strings.Replace(read, "sp=r", "sp=rw", 1))
	s.want("AuthenticationFailed", 403, "GET", "/box/blob", strings.Replace(read, "sig=", "sig=A", 1))
	s.want("AuthorizationProtocolMismatch", 403, "GET", "/box/blob", s.account(sas.AccountSignatureValues{Permissions: "r", ResourceTypes: "o", Protocol: sas.ProtocolHTTPS}))
	s.srv.Advance(time.Hour)
	s.want("AuthenticationFailed", 403, "GET", "/box/blob", read)
}

// The server accepts service signatures that the SDK makes for a container, a blob and a snapshot.
func TestServiceSignatures(t *testing.T) {
	s := newSigned(t)
	ofBlob := s.blob(sas.BlobSignatureValues{ContainerName: "box", BlobName: "blob", Permissions: "r"})
	s.want("", 200, "GET", "/box/blob", ofBlob)
	s.want("AuthenticationFailed", 403, "GET", "/box/other", ofBlob)
	ofBox := s.blob(sas.BlobSignatureValues{ContainerName: "box", Permissions: (&sas.ContainerPermissions{Read: true, List: true}).String()})
	s.want("", 200, "GET", "/box?restype=container&comp=list", ofBox)
	s.want("AuthorizationFailure", 403, "DELETE", "/box?restype=container", ofBox)
	at, err := time.Parse("2006-01-02T15:04:05.0000000Z", s.snapshot)
	if err != nil {
		t.Fatal(err)
	}
	ofSnapshot := s.blob(sas.BlobSignatureValues{ContainerName: "box", BlobName: "blob", SnapshotTime: at, Permissions: "r"})
	s.want("", 200, "GET", "/box/blob?snapshot="+s.snapshot, strings.ReplaceAll(ofSnapshot, "snapshot=", "unused="))
}
