package kubeserver

import (
	"bytes"
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
	"net"
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

	// API and Etcd are the two processes.
	API, Etcd *enginetest.Process

	// EtcdURL is where clients of the etcd connect.
	EtcdURL string

	dir, binaries string
	flags         []string
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
	s.flags = flags
	if s.Address, err = enginetest.FreeAddress(); err == nil {
		err = s.writeFiles()
	}
	if err == nil {
		err = s.StartAPI(ctx)
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
	s := &Server{dir: dir, binaries: binaries}
	address, err := enginetest.FreeAddress()
	if err != nil {
		return nil, err
	}
	s.EtcdURL = "http://" + address
	if err := s.StartEtcd(ctx); err != nil {
		s.Stop()
		return nil, err
	}
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

// StartEtcd starts the etcd, or starts it again with its old data, and returns when it is ready.
func (s *Server) StartEtcd(ctx context.Context) (err error) {
	peer, err := enginetest.FreeAddress()
	if err != nil {
		return err
	}
	s.Etcd, err = s.run("etcd", "--data-dir", filepath.Join(s.dir, "etcd"), "--unsafe-no-fsync", "--log-level", "error",
		"--listen-client-urls", s.EtcdURL, "--advertise-client-urls", s.EtcdURL, "--listen-peer-urls", "http://"+peer)
	if err != nil {
		return err
	}
	return s.ready(ctx, "etcd", s.Etcd, s.EtcdURL+"/health")
}

// StartAPI starts the API server, or starts it again, and returns when it is ready.
func (s *Server) StartAPI(ctx context.Context) (err error) {
	_, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		return err
	}
	key := filepath.Join(s.dir, "key.pem")
	s.API, err = s.run("kube-apiserver", append([]string{"--etcd-servers=" + s.EtcdURL,
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port=" + port, "--cert-dir=" + filepath.Join(s.dir, "certificates"),
		"--token-auth-file=" + filepath.Join(s.dir, "users.csv"), "--authorization-mode=RBAC",
		"--service-account-issuer=https://127.0.0.1/", "--service-account-key-file=" + key, "--service-account-signing-key-file=" + key,
		"--service-cluster-ip-range=10.0.0.0/24", "--endpoint-reconciler-type=none", "--disable-admission-plugins=ServiceAccount"}, s.flags...)...)
	if err != nil {
		return err
	}
	if err := s.ready(ctx, "kube-apiserver", s.API, "https://"+s.Address+"/readyz"); err != nil {
		return err
	}
	// The API server creates this namespace itself, shortly after it is ready.
	return s.ready(ctx, "kube-apiserver", s.API, "https://"+s.Address+"/api/v1/namespaces/default")
}

// Stop kills both processes.
func (s *Server) Stop() {
	for _, p := range []*enginetest.Process{s.API, s.Etcd} {
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

// run starts a program whose output goes to a log file in the folder of the Server.
func (s *Server) run(program string, args ...string) (*enginetest.Process, error) {
	log, err := os.OpenFile(s.log(program), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(s.binaries, program), args...)
	cmd.Stdout, cmd.Stderr = log, log
	return enginetest.StartCommand(cmd)
}

func (s *Server) log(program string) string { return filepath.Join(s.dir, program+".log") }

// patience is how long a process may take to become ready, which takes 2 seconds on an idle computer.
const patience = 2 * time.Minute

// ready waits until a request to the URL returns status 200.
func (s *Server) ready(ctx context.Context, program string, p *enginetest.Process, url string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		status, answer, err := get(ctx, http.MethodGet, url, "")
		if err == nil && status == http.StatusOK {
			return nil
		}
		select {
		case <-p.Ended():
			err = errors.New("it has ended")
		case <-ctx.Done():
			err = fmt.Errorf("%s: %d %s, %w", url, status, answer, err)
		case <-time.After(50 * time.Millisecond):
			continue
		}
		log, _ := os.ReadFile(s.log(program))
		return fmt.Errorf("kubeserver: %s is not ready: %w\n%s", program, err, bytes.TrimSpace(log[max(0, len(log)-2000):]))
	}
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
