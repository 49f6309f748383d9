package sdktest

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease/blobtest"
)

// startAzurite starts Azurite on a free port and returns the endpoint of its account. Azurite ends with
// the test, or with this process.
func startAzurite(t testing.TB) string {
	t.Helper()
	preload, err := filepath.Abs("testdata/end-with-stdin.cjs")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	cmd := exec.Command("node", "-r", preload, filepath.Join(modules, "node_modules/azurite/dist/src/blob/main.js"),
		"--blobHost", "127.0.0.1", "--blobPort", fmt.Sprint(port), "--inMemoryPersistence", "--silent", "--disableTelemetry", "--skipApiVersionCheck")
	cmd.Dir, cmd.Stderr = t.TempDir(), os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stop := sync.OnceFunc(func() {
		stdin.Close()
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
	})
	t.Cleanup(stop)
	endpoint := fmt.Sprintf("http://127.0.0.1:%d/%s", port, blobtest.DefaultAccount)
	for deadline := time.Now().Add(30 * time.Second); ; {
		res, err := http.Get(endpoint)
		if err == nil {
			res.Body.Close()
			return endpoint
		}
		if time.Now().After(deadline) {
			t.Fatal("Azurite does not answer: ", err)
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatal("Azurite ended: ", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
