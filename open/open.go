// Package open opens the store that a URL names, so that a program can get the URL of its store from a flag
// or an environment variable.
//
// A program imports the packages of the stores that it wants to open, as it imports the drivers of
// database/sql:
//
//	import _ "github.com/fencedlease/lease/redislease"
//
//	store, err := open.Store(ctx, os.Getenv("LEASE_STORE")) // such as redis://localhost:6379
//
// The documentation of each of these packages describes its URLs, and where the store gets its credentials.
package open

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// Leases is an open store. Its methods are safe for concurrent use.
type Leases interface {
	// Lease returns a holder of the lease with the given name.
	Lease(name string, o *session.Options) (*session.Session, error)

	// Authority returns an authority over the leases of the store.
	Authority() lease.Authority

	// List lists the leases, as [lease.Lister] describes.
	List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error]

	// Close frees what the store has opened, such as connections. Close releases no lease. Call Close when
	// nothing uses the store any more.
	Close() error
}

// An Opener opens the store that a URL describes. Each Opener is registered for one scheme of URLs (see
// [Register]). An Opener need not send a request. If the URL itself is wrong, the Opener returns a
// [*URLError], or an error that wraps [ErrMalformed].
type Opener func(ctx context.Context, url string) (Leases, error)

// ErrMalformed replaces the error of a URL parser, because its text could contain the password of the URL.
var ErrMalformed = errors.New("malformed")

// ErrNotImported means that a package of this library opens URLs with this scheme, but the program does not
// import that package.
var ErrNotImported = errors.New("this program has no such store")

// A URLError says what is wrong with the URL of a store, but does not contain the URL, which can include a
// password.
type URLError struct {
	Scheme string // the scheme of the URL; may be empty
	Err    error  // what is wrong
}

// Error returns a text with the scheme, if there is one, and the text of Err.
func (e *URLError) Error() string {
	if e.Scheme == "" {
		return "store URL: " + e.Err.Error()
	}
	return "store URL " + e.Scheme + ": " + e.Err.Error()
}

// Unwrap returns Err.
func (e *URLError) Unwrap() error { return e.Err }

type scheme struct {
	form string
	open Opener
}

var (
	mu      sync.RWMutex
	schemes = map[string]scheme{}
)

// The map elsewhere contains, for each scheme of this library, the package that registers the scheme.
var elsewhere = map[string]string{
	"azblob": "azlease", "etcd": "etcdlease", "file": "sqlitelease", "kube": "kubelease", "mysql": "mysqllease", "nats": "natslease",
	"postgres": "pglease", "postgresql": "pglease", "redis": "redislease", "rediss": "redislease", "s3": "s3lease",
}

// Register registers the Opener f for the scheme with the given name. When [Store] gets a URL with this
// scheme, it calls f. The form shows users what such a URL looks like, for example
// "redis://HOST:PORT[/NUMBER]". If two schemes mean the same, such as postgres and postgresql, pass an empty
// form for one of them. The package of a store calls Register from its init function. Register panics if f is
// nil, or if the scheme is malformed or already registered.
func Register(name, form string, f Opener) {
	mu.Lock()
	defer mu.Unlock()
	if _, twice := schemes[name]; twice || f == nil || name == "" || strings.ContainsAny(name, ":/") {
		panic(fmt.Sprintf("open: Register(%q): the scheme is malformed or registered already, or the function is nil", name))
	}
	schemes[name] = scheme{form, f}
}

// Forms returns the forms of the URLs that [Store] can open in this program, in alphabetical order.
func Forms() (forms []string) {
	mu.RLock()
	defer mu.RUnlock()
	for _, s := range schemes {
		if s.form != "" {
			forms = append(forms, s.form)
		}
	}
	slices.Sort(forms)
	return forms
}

// Store opens the store of a URL. The caller must close the store at the end. If the URL is wrong, or if the
// program imports no package that has registered its scheme, the error is a [*URLError]. Store need not send
// a request, so it may succeed even if the server cannot be reached. If ctx ends, Store returns.
func Store(ctx context.Context, url string) (Leases, error) {
	name, rest, found := strings.Cut(url, ":")
	mu.RLock()
	s, known := schemes[name]
	mu.RUnlock()
	switch {
	case !found || !known:
		return nil, unknown(url, name, found)
	case strings.Trim(rest, "/") == "" && !strings.HasPrefix(rest, "///"):
		return nil, &URLError{name, errors.New("incomplete; use " + s.form)}
	}
	leases, err := s.open(ctx, url)
	if errors.Is(err, ErrMalformed) {
		return nil, &URLError{name, fmt.Errorf("%w; use %s", ErrMalformed, s.form)}
	}
	return leases, err
}

// The function unknown returns the error for a URL whose scheme is not registered.
func unknown(url, name string, found bool) error {
	forms := "; use one of " + strings.Join(Forms(), " ")
	if len(Forms()) == 0 {
		forms = "; this program imports no store"
	}
	switch engine := elsewhere[name]; {
	case url == "":
		return &URLError{"", errors.New("the URL is empty" + forms)}
	case found && engine != "":
		return &URLError{name, fmt.Errorf("%w: import github.com/fencedlease/lease/%s%s", ErrNotImported, engine, forms)}
	case strings.ContainsAny(url, "/.") && !strings.ContainsAny(url, ":@"):
		return &URLError{"", errors.New("unknown store (for a file, write file:" + url + ")" + forms)}
	case !found || !isScheme(name) || strings.Contains(url, "@") && !strings.HasPrefix(url[len(name):], "://"): // the name may be the user of a URL without a scheme
		return &URLError{"", errors.New("unknown store" + forms)}
	}
	return &URLError{name, errors.New("unknown store" + forms)}
}

func isScheme(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '+' && r != '-' })
}

// Hosts returns the hosts and the path of a URL such as "nats://HOST:PORT,HOST:PORT/PATH", which package
// net/url rejects because it has several hosts. If the URL has a user or parameters, or is malformed, the
// error is a [*URLError].
func Hosts(rawURL string) (hosts []string, path string, err error) {
	name, rest, _ := strings.Cut(rawURL, "://")
	list, path, _ := strings.Cut(rest, "/")
	for host := range strings.SplitSeq(list, ",") {
		u, err := url.Parse("x://" + host)
		if err != nil || u.Host == "" || u.Host != host {
			return nil, "", &URLError{name, fmt.Errorf("host %q is not HOST:PORT", host[strings.LastIndex(host, "@")+1:])}
		}
		hosts = append(hosts, host)
	}
	if strings.ContainsAny(path, "?#") {
		return nil, "", &URLError{name, errors.New("parameters are not supported")}
	}
	return hosts, path, nil
}

// Path returns the path of a URL of the form file:PATH or file:///PATH. In the first form, PATH may be
// relative. The error is a [*URLError].
func Path(rawURL string) (string, error) {
	rest, isFile := strings.CutPrefix(rawURL, "file:")
	if !isFile {
		return "", &URLError{"", errors.New("not file:PATH")}
	}
	if after, found := strings.CutPrefix(rest, "//"); found {
		if rest = after; !strings.HasPrefix(rest, "/") {
			return "", &URLError{"file", errors.New("a path after // must begin with a third /; for a relative path, use file:PATH")}
		}
		if len(rest) > 2 && rest[2] == ':' && filepath.VolumeName(rest[1:]) != "" {
			rest = rest[1:] // for example "/C:/leases.db" on Windows
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
