package sdktest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// packages are the npm packages of these tests, with exact versions.
var packages = []string{"@azure/storage-blob@12.31.0", "azurite@3.37.0"}

// modules is the directory whose node_modules hold the packages.
var modules string

// TestMain installs the npm packages, once for all runs of a user. If node or npm is missing, the tests
// fail, because a skipped test proves nothing.
func TestMain(m *testing.M) {
	var err error
	if modules, err = install(); err != nil {
		fmt.Fprintln(os.Stderr, "sdktest needs node and npm:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// install returns a directory with the packages, which is named after their versions once it is complete.
func install() (string, error) {
	if _, err := exec.LookPath("node"); err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	name := strings.NewReplacer("@", "-", "/", "-").Replace(strings.Join(packages, ""))
	dir := filepath.Join(cache, "lease-sdktest", strings.Trim(name, "-"))
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
	if err := os.WriteFile(filepath.Join(temp, "package.json"), []byte(`{"private":true}`), 0o644); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	args := append([]string{"install", "--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", "--omit=dev"}, packages...)
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
