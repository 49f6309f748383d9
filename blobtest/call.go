package blobtest

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fencedlease/lease"
)

// A call is a request in progress.
type call struct {
	*Handler
	ctx      context.Context
	r        *http.Request
	conn     *http.ResponseController // for the connection of the request; nil if no client sent the call
	query    url.Values               // the names are in lower case, because the service ignores case; for each name, only the first value counts
	badQuery bool                     // a part of the raw query could not be parsed, so it is missing in query
	version  lease.Version

	account   *account
	hosted    bool // the account is in the host and not in the path
	kind      kind
	container string
	blob      string
	snapshot  time.Time // zero for the blob itself

	now    time.Time // the time of the request; zero if it is not known yet
	id     lease.ID  // the header x-ms-lease-id; zero if there is none
	access access

	reserved int64 // the bytes of the quota that are released when the operation has ended
}

func (h *Handler) newCall(ctx context.Context, r *http.Request) *call {
	c := &call{Handler: h, ctx: ctx, r: r, query: url.Values{}, version: h.o.DefaultVersion}
	for pair := range strings.SplitSeq(r.URL.RawQuery, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		value, err2 := url.QueryUnescape(value)
		if err = cmp.Or(err, err2); err != nil || strings.Contains(pair, ";") {
			c.badQuery = true
			continue
		}
		name = strings.ToLower(name)
		c.query[name] = append(c.query[name], value)
	}
	return c
}

// reserve makes sure that at least n bytes of the quota are reserved for the request. When the operation has
// ended, the Handler frees the bytes in c.reserved, so an operation that stores n bytes must subtract n from
// c.reserved.
func (c *call) reserve(n int64) error {
	more := max(0, n-c.reserved)
	if err := c.quota.reserve(more); err != nil {
		return err
	}
	c.reserved += more
	return nil
}

// A reply is the answer to a request that succeeds.
type reply struct {
	status int
	header http.Header
	body   segments
}

func newReply(status int) *reply { return &reply{status: status, header: http.Header{}} }

// locate parses the address of the resource. The path is /account/container/blob, or /container/blob if
// the first label of the host name is the account.
func (c *call) locate() error {
	path := c.r.URL.Path
	if !utf8.ValidString(path) || strings.IndexByte(path, 0) >= 0 || c.badQuery {
		return errURI
	}
	path = strings.TrimPrefix(path, "/")
	name, _, found := strings.Cut(c.r.Host, ".blob.")
	if c.hosted = found && c.accounts[name] != nil; !c.hosted {
		name, path, _ = strings.Cut(path, "/")
	}
	if c.account = c.accounts[name]; c.account == nil {
		return errURI
	}
	c.container, c.blob, _ = strings.Cut(path, "/")
	restype := strings.ToLower(c.query.Get("restype"))
	switch {
	case c.container == "" && c.blob != "":
		return errURI
	case restype == "account":
		c.kind = kindInformation
		return nil
	case c.container == "" && restype == "service":
		c.kind = kindSettings
	case c.container == "":
		c.kind = kindService
	case restype == "container":
		c.kind = kindContainer
		if c.blob != "" {
			return badQuery(errInvalidQuery, "restype", c.query.Get("restype"), "A blob is not a container.")
		}
	case restype != "":
		return badQuery(errInvalidQuery, "restype", c.query.Get("restype"), "It must be container.")
	case c.blob == "": // a blob of the root container
		c.kind, c.container, c.blob = kindBlob, rootContainer, c.container
	default:
		c.kind = kindBlob
	}
	if c.container != "" && !systemContainer(c.container) {
		if err := checkContainerName(c.container); err != nil {
			return err
		}
	}
	if c.kind == kindBlob && utf8.RuneCountInString(c.blob) > 1024 {
		return errNameLength
	}
	return c.locateSnapshot()
}

// These containers have a special meaning. For example, a blob whose address names no container is in $root.
const (
	rootContainer = "$root"
	webContainer  = "$web"
	logsContainer = "$logs"
)

func systemContainer(name string) bool {
	return name == rootContainer || name == webContainer || name == logsContainer
}

func (c *call) locateSnapshot() (err error) {
	s := c.query.Get("snapshot")
	if s == "" || c.kind != kindBlob {
		return nil
	}
	if c.snapshot, err = time.Parse(sevenDigits, s); err != nil || c.snapshot.IsZero() {
		return badQuery(errInvalidQuery, "snapshot", s, "It must be the time of a snapshot.")
	}
	return nil
}

// checkContainerName returns an error if the name of a container is not valid. The length of a valid name is
// "3 through 63 characters". A valid name consists of lower-case letters, digits, and single dashes between
// them. If the length is wrong, the error reports the length, even if a character is invalid as well.
func checkContainerName(s string) error {
	if n := utf8.RuneCountInString(s); n < 3 || n > 63 {
		return errNameLength
	}
	dash := true // a name must not begin with a dash
	for _, c := range []byte(s) {
		switch {
		case c == '-' && dash:
			return errResourceName
		case c == '-', 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		default:
			return errResourceName
		}
		dash = c == '-'
	}
	if dash {
		return errResourceName
	}
	return nil
}

// chooseVersion sets c.version to the service version in the header x-ms-version. Without that header, it
// uses the query parameter api-version, then the query parameter sv, and then [Options.DefaultVersion].
func (c *call) chooseVersion() error {
	c.version = c.o.DefaultVersion
	if s := c.header(headerVersion); s != "" {
		v, err := parseVersion(s)
		if err != nil {
			return badHeader(c.r, headerVersion)
		}
		c.version = v
		return nil
	}
	for _, name := range []string{"api-version", "sv"} {
		s := c.query.Get(name)
		if s == "" {
			continue
		}
		v, err := parseVersion(s)
		if err != nil {
			return badQuery(errInvalidQuery, name, s, "The version is not supported.")
		}
		c.version = v
		return nil
	}
	return nil
}

// These versions of the service changed its protocol.
const (
	versionETagQuoted   lease.Version = 2011_08_18 // entity tags have quotes
	versionStrictLease  lease.Version = 2013_08_15 // a lease ID needs a blob; answers to lease operations have an entity tag
	versionZeroLength   lease.Version = 2015_02_21 // an empty Content-Length is signed as ""
	versionEmptyHeaders lease.Version = 2016_05_31 // headers without a value are signed
)

// limitTime limits the time of the request to [Options.Timeout]. If the query of the request has the
// parameter "timeout", which is "expressed in seconds", and this time is shorter, limitTime uses this time
// instead.
func (c *call) limitTime() (context.CancelFunc, error) {
	d := c.o.Timeout
	if s := c.query.Get("timeout"); s != "" {
		n, err := strconv.ParseUint(s, 10, 31)
		if err != nil {
			return nil, badQuery(errInvalidQuery, "timeout", s, "It must be a number of seconds.")
		}
		if n > 0 {
			d = min(d, time.Duration(n)*time.Second)
		}
	}
	var cancel context.CancelFunc
	c.ctx, cancel = context.WithTimeout(c.ctx, d)
	return cancel, nil
}

func (c *call) leaseName() string { return LeaseName(c.account.name, c.container, c.blob) }

func (c *call) describe(rep *reply, etag string, modified time.Time) {
	setHeader(rep.header, "ETag", c.quoteETag(etag))
	rep.header.Set("Last-Modified", modified.UTC().Format(http.TimeFormat))
}

func (c *call) quoteETag(etag string) string {
	if c.version < versionETagQuoted {
		return etag
	}
	return `"` + etag + `"`
}
