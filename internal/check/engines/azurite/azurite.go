// Package azurite starts Azurite, an emulator of the Blob service, for tests.
package azurite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease/blobtest"
	"github.com/fencedlease/lease/leasetest/enginetest"
)

// packages are the npm packages of the tests, with exact versions.
var packages = []string{"@azure/storage-blob@12.31.0", "azurite@3.37.0"}

var installed = sync.OnceValues(install)

// Modules returns a folder with the JavaScript SDK and Azurite, installed once for all runs of a user. Without node or
// npm the test fails, because a skipped test proves nothing.
func Modules(t testing.TB) string {
	t.Helper()
	dir, err := installed()
	if err != nil {
		t.Fatal("the tests need node and npm: ", err)
	}
	return dir
}

// install installs the packages in a folder that gets its final name when it is complete.
func install() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	name := strings.NewReplacer("@", "-", "/", "-").Replace(strings.Join(packages, ""))
	dir := filepath.Join(cache, "lease-azurite", strings.Trim(name, "-"))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), "installing-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	args := append([]string{"install", "--prefix", temp, "--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", "--omit=dev"}, packages...)
	cmd := exec.CommandContext(ctx, "npm", args...)
	cmd.Dir = temp
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	err = os.Rename(temp, dir)
	if _, there := os.Stat(dir); there == nil {
		return dir, nil // installed by this run, or by another one that was faster
	}
	return "", errors.Join(errors.New("the installed packages are not in their place"), err)
}

// Start starts Azurite and returns the endpoint of its account. Azurite ends with the test, or with this process.
func Start(t testing.TB) string {
	t.Helper()
	modules := Modules(t)
	p, err := enginetest.StartProgram(t.TempDir(), func(_, port string) *exec.Cmd {
		cmd := exec.Command("node", filepath.Join(modules, "node_modules/azurite/dist/src/blob/main.js"),
			"--blobHost", "127.0.0.1", "--blobPort", port, "--inMemoryPersistence", "--silent", "--disableTelemetry", "--skipApiVersionCheck")
		cmd.Dir = t.TempDir()
		return cmd
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return "http://" + p.Addr() + "/" + blobtest.DefaultAccount
}
