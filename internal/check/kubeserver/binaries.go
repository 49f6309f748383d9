package kubeserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// These are the programs, their packages, and their linker flags. The linker sets the version of the API
// server, because clients would treat a server without one as an unreleased build.
var programs = []struct{ name, pkg, ldflags string }{
	{"etcd", "go.etcd.io/etcd/server/v3", "-s -w"},
	{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3"},
}

// Binaries returns the folder of kube-apiserver and etcd. If the computer has not built these versions of
// them with this version of Go yet, it builds them, which takes 3 to 5 minutes on two cores, 2 GB of
// memory, and 130 MB of the user's cache. The calling package must be in this repository.
func Binaries(ctx context.Context) (string, error) {
	if runtime.GOOS != "linux" {
		return "", fmt.Errorf("kubeserver: the API server is not built for %s: run these tests on Linux", runtime.GOOS)
	}
	module, err := output(ctx, "", "go", "list", "-f", "{{.Dir}}", "github.com/fencedlease/lease/internal/check/kubeserver")
	if err != nil {
		return "", err
	}
	module = filepath.Join(module, "binaries")
	key := sha256.New()
	fmt.Fprintln(key, runtime.Version(), runtime.GOARCH)
	for _, file := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(module, file))
		if err != nil {
			return "", err
		}
		key.Write(text)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	cache = filepath.Join(cache, "fencedlease-kubeserver")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(cache, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	folder := filepath.Join(cache, hex.EncodeToString(key.Sum(nil)[:8]))
	if _, err := os.Stat(folder); err == nil {
		return folder, nil
	}
	return folder, build(ctx, module, folder)
}

// build builds the programs in a temporary folder beside the final one, so that an interrupted build leaves
// no folder that looks complete.
func build(ctx context.Context, module, folder string) error {
	partial := folder + ".partial"
	if err := os.MkdirAll(partial, 0o755); err != nil {
		return err
	}
	for _, p := range programs {
		if _, err := output(ctx, module, "go", "build", "-trimpath", "-ldflags", p.ldflags, "-o", filepath.Join(partial, p.name), p.pkg); err != nil {
			return err
		}
	}
	return os.Rename(partial, folder)
}

func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	var text, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &problems
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("kubeserver: %s %s: %w\n%s", name, strings.Join(args, " "), err, problems.Bytes())
	}
	return strings.TrimSpace(text.String()), nil
}
