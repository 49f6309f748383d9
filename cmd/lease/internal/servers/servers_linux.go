// Package servers starts the servers of stores on this machine, for tests.
package servers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fencedlease/lease/internal/check/kubeserver"
	"github.com/fencedlease/lease/internal/check/mysqlserver"
	"github.com/fencedlease/lease/internal/check/pgserver"
	"github.com/fencedlease/lease/internal/check/redisserver"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/mysqllease"
	"github.com/fencedlease/lease/natslease"
	"github.com/fencedlease/lease/pglease"
)

// All starts a server of each kind on free ports of the loopback interface. It returns the URLs of their stores
// and of a SQLite file, and sets the environment variables that these URLs need. The servers store files in dir,
// and run until stop is called. The argument root is the root folder of the repository.
func All(ctx context.Context, root, dir string) (urls []string, stop func(), err error) {
	s := set{ctx: ctx, root: root, dir: dir, urls: []string{"file:" + filepath.Join(dir, "leases.db")}}
	for _, start := range []func() error{s.kubernetes, s.redis, s.nats, s.postgres, s.mysql, s.blobs, s.s3} {
		if err := start(); err != nil {
			s.stop()
			return nil, nil, err
		}
	}
	return s.urls, s.stop, nil
}

type set struct {
	ctx       context.Context
	root, dir string
	urls      []string
	stops     []func()
}

func (s *set) stop() {
	for _, stop := range slices.Backward(s.stops) {
		stop()
	}
}

func (s *set) folder(name string) (string, error) {
	dir := filepath.Join(s.dir, name)
	return dir, os.Mkdir(dir, 0o700)
}

// build builds a program in a folder whose go.mod has the module of the program.
func (s *set) build(folder, pkg string) (string, error) {
	file := filepath.Join(s.dir, filepath.Base(folder))
	cmd := exec.CommandContext(s.ctx, "go", "build", "-o", file, pkg)
	cmd.Dir = filepath.Join(s.root, folder)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %v\n%s", pkg, err, out)
	}
	return file, nil
}

// kubernetes starts an API server and its etcd, which is also used for etcd:// URLs.
func (s *set) kubernetes() error {
	dir, err := s.folder("kubernetes")
	if err != nil {
		return err
	}
	k, err := kubeserver.Start(s.ctx, dir)
	if err != nil {
		return err
	}
	s.stops = append(s.stops, k.Stop)
	config := filepath.Join(dir, "kubeconfig")
	text := fmt.Sprintf(`{"clusters": [{"name": "c", "cluster": {"server": "https://%s", "insecure-skip-tls-verify": true}}],
		"users": [{"name": "u", "user": {"token": %q}}], "current-context": "x",
		"contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}]}`, k.Address, kubeserver.Admin)
	s.urls = append(s.urls, "kube://default", strings.Replace(k.EtcdURL, "http", "etcd", 1)+"/leases")
	return errors.Join(os.WriteFile(config, []byte(text), 0o600), os.Setenv("KUBECONFIG", config))
}

func (s *set) redis() error {
	dir, err := s.folder("redis")
	if err != nil {
		return err
	}
	url, _, stop, err := Redis(dir)
	if err == nil {
		s.stops, s.urls = append(s.stops, stop), append(s.urls, url)
	}
	return err
}

// Redis starts a server, and returns its URL, its process and a function that kills it.
func Redis(dir string) (url string, p *os.Process, stop func(), err error) {
	s, err := redisserver.New(dir)
	if err != nil {
		return "", nil, nil, err
	}
	p, err = os.FindProcess(s.Pid())
	return "redis://" + s.Addr(), p, s.Kill, err
}

func (s *set) nats() error {
	program, err := s.build("internal/check/engines", "github.com/nats-io/nats-server/v2")
	if err != nil {
		return err
	}
	dir, err := s.folder("nats")
	if err != nil {
		return err
	}
	p, err := enginetest.StartProgram(dir, func(_, port string) *exec.Cmd {
		return exec.Command(program, "-a", "127.0.0.1", "-p", port, "-js", "-sd", dir)
	}, makeBucket)
	if err == nil {
		s.stops, s.urls = append(s.stops, func() { p.Kill() }), append(s.urls, "nats://"+p.Addr()+"/commands")
	}
	return err
}

func makeBucket(ctx context.Context, p *enginetest.Program) error {
	nc, err := nats.Connect("nats://" + p.Addr())
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err == nil {
		_, err = js.CreateKeyValue(ctx, natslease.BucketConfig("commands", 1))
	}
	return err
}

// Postgres starts a server with the tables of pglease, and returns its URL and a function that kills it.
func Postgres(ctx context.Context, dir string) (url string, stop func(), err error) {
	s := set{ctx: ctx, dir: dir}
	if err := s.postgres(); err != nil {
		s.stop()
		return "", nil, err
	}
	return s.urls[0], s.stop, nil
}

func (s *set) postgres() error {
	dir, err := os.MkdirTemp("", "postgres") // another user runs the server, and may not enter the folders above s.dir
	if err != nil {
		return err
	}
	s.stops = append(s.stops, func() { os.RemoveAll(dir) })
	server, err := pgserver.New(dir, "fsync=off")
	if err != nil {
		return err
	}
	s.stops = append(s.stops, server.Stop)
	url := "postgres://postgres@" + server.Addr() + "/postgres"
	s.urls = append(s.urls, url)
	pool, err := pgxpool.New(s.ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	return pglease.Migrate(s.ctx, pool, nil)
}

// mysql starts MariaDB, and makes the tables with the program mysql, as docs/command.md says.
func (s *set) mysql() error {
	dir, err := s.folder("mysql")
	if err != nil {
		return err
	}
	server, err := mysqlserver.New(dir)
	if err != nil {
		return err
	}
	s.stops, s.urls = append(s.stops, func() { server.Kill() }), append(s.urls, mysqlserver.URL(server.Addr(), "app"))
	if err := server.Client("mysql", "create database app"); err != nil {
		return err
	}
	return server.Client("app", mysqllease.Tables)
}

// s3 starts VersityGW, which keeps objects in files, with an empty bucket.
func (s *set) s3() error {
	program, err := exec.CommandContext(s.ctx, "go", "-C", filepath.Join(s.root, "internal/check/engines"), "tool", "-n", "versitygw").Output() // builds it if necessary
	if err != nil {
		return err
	}
	dir, err := s.folder("s3")
	if err != nil {
		return err
	}
	files := filepath.Join(dir, "files")
	if err := os.MkdirAll(filepath.Join(files, "bucket"), 0o700); err != nil {
		return err
	}
	p, err := enginetest.StartProgram(dir, func(addr, _ string) *exec.Cmd {
		cmd := exec.Command(strings.TrimSpace(string(program)), "--port", addr, "--keep-alive", "--quiet", "posix", files)
		cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY_ID=user", "ROOT_SECRET_ACCESS_KEY=password")
		return cmd
	}, nil)
	if err != nil {
		return err
	}
	s.stops, s.urls = append(s.stops, func() { p.Kill() }), append(s.urls, "s3://bucket?region=us-east-1&path-style=true&endpoint=http://"+p.Addr())
	return errors.Join(os.Setenv("AWS_ACCESS_KEY_ID", "user"), os.Setenv("AWS_SECRET_ACCESS_KEY", "password"))
}

// blobs starts the test server for Azure Blob.
func (s *set) blobs() error {
	program, err := s.build("blobtest", "./cmd/blobtest")
	if err != nil {
		return err
	}
	cmd := exec.Command(program, "-addr", "127.0.0.1:0", "-clock", "real", "-container", "box", "-quiet")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	p, err := enginetest.StartCommand(cmd)
	if err != nil {
		return err
	}
	s.stops, s.urls = append(s.stops, p.Kill), append(s.urls, "azblob://box")
	for in := bufio.NewScanner(out); in.Scan(); {
		if _, rest, found := strings.Cut(in.Text(), "DefaultEndpointsProtocol="); found {
			return os.Setenv("AZURE_STORAGE_CONNECTION_STRING", "DefaultEndpointsProtocol="+rest)
		}
	}
	return errors.New("the double of Azure Blob prints no connection string")
}
