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

// A call is one request on its way through the handler.
type call struct {
	*Handler
	ctx      context.Context
	r        *http.Request
	conn     *http.ResponseController // of the connection that the request came on; nil for the source of a copy
	query    url.Values               // names in lower case, as the service compares them; of one name the first counts
	badQuery bool                     // some of it is missing there
	version  lease.Version

	account   *account
	hosted    bool // the account is named by the host, not by the path
	kind      kind
	container string
	blob      string
	snapshot  time.Time // zero: the blob itself

	now    time.Time // of the request; zero: not decided yet
	id     lease.ID  // x-ms-lease-id; zero: none
	access access

	held int64 // of the room, until it is answered
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

// hold takes from the room what the call does not hold already of n. Whatever is kept in the end
// is to be taken off from what it holds.
func (c *call) hold(n int64) error {
	more := max(0, n-c.held)
	if err := c.room.take(more); err != nil {
		return err
	}
	c.held += more
	return nil
}

// A reply is an answer that is a success.
type reply struct {
	status int
	header http.Header
	body   segments
}

func newReply(status int) *reply { return &reply{status: status, header: http.Header{}} }

// locate finds out which resource the request is about. A path is
// /account/container/blob, or without the account if that is the first label of the host.
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
		c.kind = information
		return nil
	case c.container == "" && restype == "service":
		c.kind = settings
	case c.container == "":
		c.kind = service
	case restype == "container":
		c.kind = container
		if c.blob != "" {
			return badQuery(errInvalidQuery, "restype", c.query.Get("restype"), "A blob is no container.")
		}
	case restype != "":
		return badQuery(errInvalidQuery, "restype", c.query.Get("restype"), "It must be container.")
	case c.blob == "": // a blob of the root container
		c.kind, c.container, c.blob = blob, rootContainer, c.container
	default:
		c.kind = blob
	}
	if c.container != "" && !systemContainer(c.container) {
		if err := checkContainerName(c.container); err != nil {
			return err
		}
	}
	if c.kind == blob && utf8.RuneCountInString(c.blob) > 1024 {
		return errNameLength
	}
	return c.locateSnapshot()
}

// The containers that the service has uses of its own for. A blob whose address names no container
// is in $root.
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
	if s == "" || c.kind != blob {
		return nil
	}
	if c.snapshot, err = time.Parse(sevenDigits, s); err != nil || c.snapshot.IsZero() {
		return badQuery(errInvalidQuery, "snapshot", s, "It must be the time of a snapshot.")
	}
	return nil
}

// checkContainerName: "3 through 63 characters", lower-case letters, digits and single dashes
// between them. Of a name that is wrong in both, the length is told.
func checkContainerName(s string) error {
	if n := utf8.RuneCountInString(s); n < 3 || n > 63 {
		return errNameLength
	}
	dash := true // no dash at the beginning
	for _, c := range []byte(s) {
		switch {
		case c == '-' && dash:
			return errResourceName
		case c != '-' && (c < 'a' || c > 'z') && (c < '0' || c > '9'):
			return errResourceName
		}
		dash = c == '-'
	}
	if dash {
		return errResourceName
	}
	return nil
}

// chooseVersion reads the version of the service that the request is meant for: from the
// header, the query or the signature, in this order.
func (c *call) chooseVersion() error {
	c.version = c.o.DefaultVersion
	if s := c.header(headerVersion); s != "" {
		v, err := lease.ParseVersion(s)
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
		v, err := lease.ParseVersion(s)
		if err != nil {
			return badQuery(errInvalidQuery, name, s, "The version is not supported.")
		}
		c.version = v
		return nil
	}
	return nil
}

// Versions from which on the service does something otherwise.
const (
	versionETagQuoted   lease.Version = 2011_08_18 // entity tags are quoted
	versionStrictLease  lease.Version = 2013_08_15 // a lease ID needs a blob; lease operations tell the entity tag
	versionZeroLength   lease.Version = 2015_02_21 // an empty Content-Length is signed as ""
	versionEmptyHeaders lease.Version = 2016_05_31 // headers without a value are signed
)

// limitTime bounds the context by the parameter timeout, "expressed in seconds".
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

// leaseName is the name of the lease of the resource.
func (c *call) leaseName() string { return LeaseName(c.account.name, c.container, c.blob) }

// describe puts the entity tag and the time of the last change on an answer.
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
