// Package open opens the store of a URL, so that a program can take its store from a variable.
package open

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/azlease"
	"github.com/fencedlease/lease/etcdlease"
	"github.com/fencedlease/lease/kubelease"
	"github.com/fencedlease/lease/natslease"
	"github.com/fencedlease/lease/pglease"
	"github.com/fencedlease/lease/redislease"
	"github.com/fencedlease/lease/session"
	"github.com/fencedlease/lease/sqlitelease"
)

// Leases is what every store of this library has. It is safe for concurrent use.
type Leases interface {
	// Lease returns a holder of the lease with the given name.
	Lease(name string, o *session.Options) (*session.Session, error)
	// Authority returns an authority over the leases of the store.
	Authority() lease.Authority
	// List lists the leases, as [lease.Lister] describes.
	List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error]
}

// A URLError says what is wrong with the URL of a store, but never contains the URL, which can have a
// password.
type URLError struct {
	Scheme string // as in the URL; may be empty
	Err    error  // what is wrong
}

// Error returns a text with the scheme, if there is one, and the text of Err.
func (e *URLError) Error() string {
	if e.Scheme == "" {
		return "store URL: " + e.Err.Error()
	}
	return "store URL " + e.Scheme + "://: " + e.Err.Error()
}

// Unwrap returns Err.
func (e *URLError) Unwrap() error { return e.Err }

// A scheme opens the stores of its URLs. The rest of a URL is what follows "://", or "file:".
type scheme struct {
	name string
	form string
	open func(ctx context.Context, full, rest string) (Leases, func(), error)
}

var schemes = []scheme{
	{"file", "file:PATH", file},
	{"postgres", "postgres://[USER@]HOST[:PORT]/DATABASE", postgres},
	{"etcd", "etcd://HOST:PORT[,HOST:PORT...][/PREFIX]", etcd},
	{"redis", "redis://HOST:PORT[/NUMBER]", redisURL},
	{"rediss", "rediss://HOST:PORT[/NUMBER]", redisURL},
	{"nats", "nats://HOST:PORT[,HOST:PORT...][/BUCKET]", natsURL},
	{"kube", "kube://NAMESPACE", kube},
	{"azblob", "azblob://[ACCOUNT/]CONTAINER", azure},
}

// Forms returns the forms of the URLs that Store understands.
func Forms() (forms []string) {
	for _, s := range schemes {
		forms = append(forms, s.form)
	}
	return forms
}

// Store opens the store of a URL, and returns it with a function that frees its connections. If the URL
// itself is wrong, the error is a *[URLError]. Store need not send a request, so an unreachable store may
// first show in the error of a later one. The form file:PATH, in which PATH may be relative, opens a file
// of package sqlitelease; file:///PATH is the same.
//
// The credentials come from where the tools of each engine take them: PGPASSWORD and the other PG variables,
// or ~/.pgpass; ETCDCTL_USER (name:password), ETCDCTL_CACERT, ETCDCTL_CERT and ETCDCTL_KEY; REDISCLI_AUTH;
// NATS_CREDS, or NATS_USER and NATS_PASSWORD; KUBECONFIG, ~/.kube/config or the service account of a pod;
// AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_KEY and, unless the URL has it, AZURE_STORAGE_ACCOUNT.
func Store(ctx context.Context, rawURL string) (Leases, func(), error) {
	name, rest, ok := strings.Cut(rawURL, "://")
	if path, found := strings.CutPrefix(rawURL, "file:"); found {
		name, rest, ok = "file", path, true
	}
	if name == "postgresql" {
		name = "postgres"
	}
	i := slices.IndexFunc(schemes, func(s scheme) bool { return s.name == name })
	if !ok || i < 0 {
		if !ok {
			name = ""
		}
		hint := ""
		if strings.ContainsAny(rawURL, "/.") && !strings.ContainsAny(rawURL, ":@") {
			hint = " (for a file, write file:" + rawURL + ")"
		}
		return nil, nil, &URLError{name, errors.New("unknown store" + hint + "; use one of " + strings.Join(Forms(), " "))}
	}
	s := schemes[i]
	if rest == "" {
		return nil, nil, &URLError{name, errors.New("incomplete; use " + s.form)}
	}
	leases, end, err := s.open(ctx, rawURL, rest)
	if errors.Is(err, errMalformed) {
		err = &URLError{name, fmt.Errorf("%w; use %s", errMalformed, s.form)}
	}
	return leases, end, err
}

// errMalformed stands for an error of a client, whose text can have the password.
var errMalformed = errors.New("malformed")

// Path returns the path of a URL of the form file:PATH, or the empty string if it has another form.
func Path(url string) string {
	rest, isFile := strings.CutPrefix(url, "file:")
	if !isFile {
		return ""
	}
	path, _ := filePath(rest)
	return path
}

func filePath(rest string) (string, error) {
	if after, found := strings.CutPrefix(rest, "//"); found {
		if rest = after; !strings.HasPrefix(rest, "/") {
			return "", &URLError{"file", errors.New("a path after // must begin with a third /; for a relative path, use file:PATH")}
		}
		if len(rest) > 2 && rest[2] == ':' && filepath.VolumeName(rest[1:]) != "" {
			rest = rest[1:] // "/C:/leases.db" of Windows
		}
	}
	path, err := url.PathUnescape(rest)
	if err != nil || strings.ContainsAny(rest, "?#") {
		return "", &URLError{"file", errors.New("malformed: parameters are not supported; write ?, # and % in a path as %3F, %23 and %25")}
	}
	switch {
	case path == "" || strings.HasSuffix(path, "/"):
		return "", &URLError{"file", errors.New("a path must be that of a file, and not of a folder")}
	case path == ":memory:":
		return "", &URLError{"file", errors.New("a database in memory would not be shared with another process; use file:PATH")}
	}
	return path, nil
}

func file(_ context.Context, _, rest string) (Leases, func(), error) {
	path, err := filePath(rest)
	if err != nil {
		return nil, nil, err
	}
	s, err := sqlitelease.Open(path, nil)
	if err != nil {
		return nil, nil, err
	}
	return s, func() { _ = s.Close() }, nil
}

func postgres(ctx context.Context, full, _ string) (Leases, func(), error) {
	c, err := pgxpool.ParseConfig(full)
	if err != nil {
		return nil, nil, errMalformed
	}
	pool, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	s, err := pglease.New(pool, nil)
	if err != nil {
		pool.Close()
		return nil, nil, err
	}
	return s, func() { s.Close(); pool.Close() }, nil
}

// hosts splits "HOST:PORT,HOST:PORT/PATH". The package net/url rejects several hosts.
func hosts(scheme, rest string) (hosts []string, path string, err error) {
	list, path, _ := strings.Cut(rest, "/")
	for host := range strings.SplitSeq(list, ",") {
		u, err := url.Parse("x://" + host)
		if err != nil || u.Host == "" || u.Host != host {
			return nil, "", &URLError{scheme, fmt.Errorf("host %q is not HOST:PORT", host[strings.LastIndex(host, "@")+1:])}
		}
		hosts = append(hosts, host)
	}
	if strings.ContainsAny(path, "?#") {
		return nil, "", &URLError{scheme, errors.New("parameters are not supported")}
	}
	return hosts, path, nil
}

func etcd(ctx context.Context, _, rest string) (Leases, func(), error) {
	hosts, prefix, err := hosts("etcd", rest)
	if err != nil {
		return nil, nil, err
	}
	c := etcdlease.ClientConfig(hosts...)
	c.Logger = zap.NewNop() // it would print each failed request, besides the error
	if user := os.Getenv("ETCDCTL_USER"); user != "" {
		var ok bool
		if c.Username, c.Password, ok = strings.Cut(user, ":"); !ok {
			c.Password = os.Getenv("ETCDCTL_PASSWORD")
		}
	}
	tls := transport.TLSInfo{
		TrustedCAFile: os.Getenv("ETCDCTL_CACERT"), CertFile: os.Getenv("ETCDCTL_CERT"), KeyFile: os.Getenv("ETCDCTL_KEY"),
	}
	if tls.TrustedCAFile != "" || tls.CertFile != "" {
		if c.TLS, err = tls.ClientConfig(); err != nil {
			return nil, nil, lease.Permanent(err)
		}
	}
	client, err := clientv3.New(c)
	if err != nil {
		return nil, nil, err
	}
	s, err := etcdlease.New(client, &etcdlease.Options{Prefix: prefix})
	if err != nil {
		client.Close()
		return nil, nil, err
	}
	return s, func() { client.Close() }, nil
}

func redisURL(_ context.Context, full, _ string) (Leases, func(), error) {
	o, err := redis.ParseURL(full)
	if err != nil {
		return nil, nil, errMalformed
	}
	if o.Password == "" {
		o.Password = os.Getenv("REDISCLI_AUTH")
	}
	client := redis.NewClient(o)
	s, err := redislease.New(client, nil)
	if err != nil {
		client.Close()
		return nil, nil, err
	}
	return s, func() { s.Close(); client.Close() }, nil
}

func natsURL(ctx context.Context, _, rest string) (Leases, func(), error) {
	hosts, bucket, err := hosts("nats", rest)
	if err != nil {
		return nil, nil, err
	}
	o := natslease.ConnectOptions()
	if file := os.Getenv("NATS_CREDS"); file != "" {
		o = append(o, nats.UserCredentials(file))
	} else if user := os.Getenv("NATS_USER"); user != "" {
		o = append(o, nats.UserInfo(user, os.Getenv("NATS_PASSWORD")))
	}
	for i, h := range hosts {
		hosts[i] = "nats://" + h
	}
	nc, err := nats.Connect(strings.Join(hosts, ","), o...)
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(nc)
	if err == nil {
		var s *natslease.Store
		if s, err = natslease.New(ctx, js, &natslease.Options{Bucket: bucket}); err == nil {
			return s, nc.Close, nil
		}
	}
	nc.Close()
	return nil, nil, err
}

func kube(_ context.Context, _, namespace string) (Leases, func(), error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, nil, lease.Permanent(err)
	}
	client, err := coordinationclient.NewForConfig(kubelease.ClientConfig(config))
	if err != nil {
		return nil, nil, lease.Permanent(err)
	}
	s, err := kubelease.New(client, namespace, nil)
	if err != nil {
		return nil, nil, &URLError{"kube", err}
	}
	return s, func() {}, nil
}

func azure(_ context.Context, _, rest string) (Leases, func(), error) {
	account, name, both := strings.Cut(rest, "/")
	if !both {
		account, name = os.Getenv("AZURE_STORAGE_ACCOUNT"), account
	}
	o := &container.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: azlease.NewTransport(nil)}}
	var client *container.Client
	var err error
	if conn := os.Getenv("AZURE_STORAGE_CONNECTION_STRING"); conn != "" && !both {
		client, err = container.NewClientFromConnectionString(conn, name, o)
	} else {
		var key *container.SharedKeyCredential
		if account == "" || os.Getenv("AZURE_STORAGE_KEY") == "" {
			return nil, nil, &URLError{"azblob", errors.New("set AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY")}
		}
		if key, err = container.NewSharedKeyCredential(account, os.Getenv("AZURE_STORAGE_KEY")); err == nil {
			client, err = container.NewClientWithSharedKeyCredential("https://"+account+".blob.core.windows.net/"+name, key, o)
		}
	}
	if err != nil {
		return nil, nil, lease.Permanent(err)
	}
	s, err := azlease.New(client, nil)
	if err != nil {
		return nil, nil, err
	}
	return s, func() {}, nil
}
