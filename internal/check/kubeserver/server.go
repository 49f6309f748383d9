package kubeserver

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/fencedlease/lease/leasetest/enginetest"
)

// A Server is an API server and its etcd, on free ports of the loopback.
type Server struct {
	// Address is the host and port of the API server, which uses TLS with a self-signed certificate.
	Address string

	// API and Etcd are the two programs, which can be killed and started again.
	API, Etcd *enginetest.Program

	// EtcdURL is where clients of the etcd connect.
	EtcdURL string

	dir, binaries string
}

// Admin is the bearer token of a user with all permissions. The token of every other user is its name, and
// [Users] lists them.
const Admin = "admin"

// Users are the users that start without permissions.
var Users = []string{"worker", "reader", "creator", "updater", "watcher", "lister"}

// Start starts an etcd and an API server that store their files in the folder dir, and returns when the API
// server is ready. Call Stop at the end.
func Start(ctx context.Context, dir string, flags ...string) (*Server, error) {
	s, err := Etcd(ctx, dir)
	if err != nil {
		return nil, err
	}
	if err = s.writeFiles(); err == nil {
		err = s.startAPI(flags)
	}
	if err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// Etcd starts an etcd without an API server.
func Etcd(ctx context.Context, dir string) (*Server, error) {
	binaries, err := Binaries(ctx)
	if err != nil {
		return nil, err
	}
	peer, err := enginetest.FreeAddress()
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, binaries: binaries}
	s.Etcd, err = s.run("etcd", func(addr, _ string) []string {
		url := "http://" + addr
		return []string{"--data-dir", filepath.Join(dir, "etcd", "data"), "--unsafe-no-fsync", "--log-level", "error",
			"--listen-client-urls", url, "--advertise-client-urls", url, "--listen-peer-urls", "http://" + peer}
	}, func(ctx context.Context, addr string) error { return ready(ctx, "http://"+addr+"/health") })
	if err != nil {
		s.Stop()
		return nil, err
	}
	s.EtcdURL = "http://" + s.Etcd.Addr()
	return s, nil
}

// writeFiles writes the list of users and the key for the API server.
func (s *Server) writeFiles() error {
	users := Admin + "," + Admin + ",1,system:masters\n"
	for i, name := range Users {
		users += fmt.Sprintf("%s,%s,%d\n", name, name, i+2)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(s.dir, "users.csv"), []byte(users), 0o600),
		os.WriteFile(filepath.Join(s.dir, "key.pem"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600),
	)
}

func (s *Server) startAPI(flags []string) (err error) {
	key := filepath.Join(s.dir, "key.pem")
	s.API, err = s.run("kube-apiserver", func(_, port string) []string {
		return append([]string{"--etcd-servers=" + s.EtcdURL,
			"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port=" + port, "--cert-dir=" + filepath.Join(s.dir, "certificates"),
			"--token-auth-file=" + filepath.Join(s.dir, "users.csv"), "--authorization-mode=RBAC",
			"--service-account-issuer=https://127.0.0.1/", "--service-account-key-file=" + key, "--service-account-signing-key-file=" + key,
			"--service-cluster-ip-range=10.0.0.0/24", "--endpoint-reconciler-type=none", "--disable-admission-plugins=ServiceAccount"}, flags...)
	}, func(ctx context.Context, addr string) error {
		if err := ready(ctx, "https://"+addr+"/readyz"); err != nil {
			return err
		}
		// The API server creates this namespace itself, shortly after it is ready.
		return ready(ctx, "https://"+addr+"/api/v1/namespaces/default")
	})
	if err == nil {
		s.Address = s.API.Addr()
	}
	return err
}

// Stop kills both processes.
func (s *Server) Stop() {
	for _, p := range []*enginetest.Program{s.API, s.Etcd} {
		if p != nil {
			p.Kill()
		}
	}
}

// Compact makes etcd drop all versions except the newest one of each key. A watch or a list that asks for
// an old version then gets the answer 410 Gone.
func (s *Server) Compact(ctx context.Context) error {
	// The answer to a read of a key that does not exist contains the newest revision.
	_, answer, err := get(ctx, http.MethodPost, s.EtcdURL+"/v3/kv/range", `{"key":"AA=="}`)
	if err != nil {
		return err
	}
	_, revision, found := strings.Cut(answer, `"revision":"`)
	revision, _, _ = strings.Cut(revision, `"`)
	if !found {
		return fmt.Errorf("kubeserver: etcd does not show its revision: %s", answer)
	}
	status, answer, err := get(ctx, http.MethodPost, s.EtcdURL+"/v3/kv/compaction", `{"revision":"`+revision+`","physical":true}`)
	compacted := strings.Contains(answer, "has been compacted") // nothing was written since the last call of Compact
	if err == nil && status != http.StatusOK && !compacted {
		err = fmt.Errorf("kubeserver: a compaction at %s is answered with %d: %s", revision, status, answer)
	}
	return err
}

// run starts a program whose files are in a folder of its own.
func (s *Server) run(program string, args func(addr, port string) []string, answers func(ctx context.Context, addr string) error) (*enginetest.Program, error) {
	dir := filepath.Join(s.dir, program)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	return enginetest.StartProgram(dir, func(addr, port string) *exec.Cmd {
		return exec.Command(filepath.Join(s.binaries, program), args(addr, port)...)
	}, func(ctx context.Context, p *enginetest.Program) error { return answers(ctx, p.Addr()) })
}

// ready returns nil if a request to the URL returns status 200.
func ready(ctx context.Context, url string) error {
	status, answer, err := get(ctx, http.MethodGet, url, "")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%s: %d %s", url, status, answer)
	}
	return err
}

// get makes a request over a connection of its own.
func get(ctx context.Context, method, url, body string) (status int, answer string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	q.Header.Set("Authorization", "Bearer "+Admin)
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	res, err := transport.RoundTrip(q)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), err
}
