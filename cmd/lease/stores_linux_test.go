package main_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fencedlease/lease/internal/check/kubeserver"
	"github.com/fencedlease/lease/natslease"
	"github.com/fencedlease/lease/pglease"
)

// A store of each kind is opened by its URL, and the program runs, lists and breaks there.
func TestStores(t *testing.T) {
	dir := t.TempDir()
	k, err := kubeserver.Start(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Stop)
	config := filepath.Join(dir, "kubeconfig")
	text := fmt.Sprintf(`{"clusters": [{"name": "c", "cluster": {"server": "https://%s", "insecure-skip-tls-verify": true}}],
		"users": [{"name": "u", "user": {"token": %q}}], "current-context": "x",
		"contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}]}`, k.Address, kubeserver.Admin)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", config)
	for _, store := range []string{
		url, "kube://default", strings.Replace(k.EtcdURL, "http", "etcd", 1) + "/leases",
		natsServer(t), postgres(t), blobs(t),
	} {
		scheme, _, _ := strings.Cut(store, ":")
		duration := "6s"
		if scheme == "azblob" {
			duration = "15s" // the least that Azure grants
		}
		t.Run(scheme, func(t *testing.T) {
			out, stderr, code := run(t, store, "run", "-duration", duration, "s/a", "--", "sh", "-c",
				`echo "$LEASE_TOKEN"; exec "$0" show -json s/a`, binary)
			token, shown, _ := strings.Cut(out, "\n")
			if all := rows(t, shown); code != 0 || len(all) != 1 || all[0].State != "leased" || all[0].Token != token {
				t.Fatalf("run: %d, %q %s", code, out, stderr)
			}
			file := filepath.Join(t.TempDir(), "beats")
			holder := start(t, store, append([]string{"run", "-duration", duration, "s/b", "--"}, heartbeat(file)...)...)
			eventually(t, "the command runs", 10*time.Second, func() bool { return exists(file) })
			out, stderr, code = run(t, store, "ls", "-json", "s/")
			if all := rows(t, out); code != 0 || len(all) == 0 || all[len(all)-1].Name != "s/b" || all[len(all)-1].State != "leased" {
				t.Errorf("ls: %d, %s %s", code, out, stderr)
			}
			if _, stderr, code = run(t, store, "run", "-duration", duration, "s/b", "--", "true"); code != 75 {
				t.Errorf("a second holder: %d, %s", code, stderr)
			}
			if out, stderr, code = run(t, store, "break", "s/b", "-grace", "1s", "-yes"); code != 0 || !strings.Contains(out, "is free in") {
				t.Errorf("break: %d, %s %s", code, out, stderr)
			}
			if _, stderr, code = run(t, store, "run", "-duration", duration, "-wait", "1m", "s/b", "--", "true"); code != 0 {
				t.Errorf("after the break: %d, %s", code, stderr)
			}
			dead(t, file)
			_ = holder.Wait()
			if code := holder.ProcessState.ExitCode(); code != 76 {
				t.Errorf("the holder: %d, want 76", code)
			}
		})
	}
}

// serve starts a server, which is killed at the end of the test.
func serve(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
}

// build builds a program of another module of the repository.
func build(t *testing.T, module, pkg string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program")
	cmd := exec.Command("go", "build", "-o", file, pkg)
	cmd.Dir = module
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", pkg, err, out)
	}
	return file
}

func freePort(t *testing.T) (address, port string) {
	t.Helper()
	address, err := kubeserver.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ = net.SplitHostPort(address)
	return address, port
}

func natsServer(t *testing.T) (url string) {
	address, port := freePort(t)
	program := build(t, "../../natslease/natstest", "github.com/nats-io/nats-server/v2")
	serve(t, exec.Command(program, "-a", "127.0.0.1", "-p", port, "-js", "-sd", t.TempDir()))
	var js jetstream.JetStream
	eventually(t, "NATS answers", 30*time.Second, func() bool {
		nc, err := nats.Connect("nats://" + address)
		if err != nil {
			return false
		}
		t.Cleanup(nc.Close)
		if js, err = jetstream.New(nc); err == nil {
			_, err = js.CreateKeyValue(t.Context(), natslease.BucketConfig("commands", 1))
		}
		return err == nil
	})
	return "nats://" + address + "/commands"
}

func postgres(t *testing.T) string {
	address, port := freePort(t)
	dir, err := os.MkdirTemp("", "postgres") // the folders above that of the test are closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	all, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if len(all) == 0 {
		t.Fatal("there is no PostgreSQL in /usr/lib/postgresql")
	}
	var attr syscall.SysProcAttr
	if os.Getuid() == 0 { // PostgreSQL refuses root.
		u, err := user.Lookup("nobody")
		if err != nil {
			t.Fatal(err)
		}
		uid, _ := strconv.Atoi(u.Uid)
		attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
		if err := os.Chown(dir, uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	init := exec.Command(filepath.Join(all[0], "initdb"), "-D", dir, "-U", "postgres", "-A", "trust", "--no-sync")
	init.Dir, init.SysProcAttr = dir, &attr
	if out, err := init.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	server := exec.Command(filepath.Join(all[0], "postgres"), "-D", dir, "-k", dir, "-p", port, "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off")
	server.Dir, server.SysProcAttr = dir, &attr
	serve(t, server)
	at := "postgres://postgres@" + address + "/postgres"
	pool, err := pgxpool.New(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	eventually(t, "PostgreSQL answers", 30*time.Second, func() bool { return pglease.Migrate(t.Context(), pool, nil) == nil })
	return at
}

// blobs starts the double of Azure Blob.
func blobs(t *testing.T) string {
	cmd := exec.Command(build(t, "../../blobtest", "./cmd/blobtest"), "-addr", "127.0.0.1:0", "-clock", "real", "-container", "box", "-quiet")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	serve(t, cmd)
	for in := bufio.NewScanner(out); in.Scan(); {
		if _, rest, found := strings.Cut(in.Text(), "DefaultEndpointsProtocol="); found {
			t.Setenv("AZURE_STORAGE_CONNECTION_STRING", "DefaultEndpointsProtocol="+rest)
			return "azblob://box"
		}
	}
	t.Fatal("the double of Azure Blob prints no connection string")
	return ""
}
