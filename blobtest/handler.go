package blobtest

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
)

// A Handler is an [http.Handler] that serves the Blob protocol, for an HTTP server of your own. It stores the
// blobs, and its authority stores the leases. The methods of a Handler are safe for concurrent use. Create a
// Handler with [NewHandler], because the methods of a zero Handler panic.
type Handler struct {
	auth      lease.Authority
	ownLeases bool // the Handler created the authority, which runs on the Handler's clock
	o         Options
	outcomes  []outcome
	accounts  map[string]*account
	gates     gates
	quota     quota
	etags     atomic.Uint64
}

// NewHandler returns a Handler whose leases are granted by the authority auth. If auth is nil, the Handler
// creates an authority in memory with the limits of the service and Options.Clock. For an invalid option,
// NewHandler returns a [*lease.FieldError]. It also returns an error if it cannot create one of
// Options.Containers.
func NewHandler(auth lease.Authority, o *Options) (*Handler, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	h := &Handler{auth: auth, o: opts, accounts: map[string]*account{}, outcomes: outcomes}
	if auth == nil {
		h.auth, h.ownLeases = newAuthority(opts.Clock), true
	}
	h.quota.limit = opts.MaxTotal
	if opts.PublishedTable {
		h.outcomes = append(publishedOutcomes[:len(publishedOutcomes):len(publishedOutcomes)], outcomes...)
	}
	for name, key := range opts.Accounts {
		k, _ := base64.StdEncoding.DecodeString(key) // withDefaults has already checked the key
		h.accounts[name] = &account{name: name, key: k, containers: map[string]*container{}}
	}
	ctx, cancel := context.WithTimeout(context.Background(), opts.Timeout)
	defer cancel()
	if err := h.createContainers(ctx); err != nil {
		return nil, err
	}
	return h, nil
}

// Authority returns the authority that grants the Handler's leases. A test can use it to inspect or change a
// lease without a client. [LeaseName] returns the name of the lease of a resource.
func (h *Handler) Authority() lease.Authority {
	h.mustBeMade()
	return h.auth
}

// Clock returns the Handler's clock.
func (h *Handler) Clock() *leasefault.Clock {
	h.mustBeMade()
	return h.o.Clock
}

func (h *Handler) mustBeMade() {
	if h == nil || h.auth == nil {
		panic("blobtest: use of a zero Handler or Server: NewHandler and NewServer make them")
	}
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mustBeMade()
	ctx, cancel := outliveClient(r.Context())
	defer cancel()
	c := h.newCall(ctx, r)
	c.conn = http.NewResponseController(w)
	id := uuid.NewString()
	header := w.Header()
	header.Set("Server", "Windows-Azure-Blob/1.0 blobtest")
	setHeader(header, headerRequest, id)
	if v := headerOf(r, headerClient); validRequestID(v) {
		setHeader(header, headerClient, v)
	}

	var rep *reply
	var err error
	if r.Method == http.MethodOptions {
		rep, err = c.preflight()
	} else {
		h.addCORS(header, r)
		rep, err = c.serve()
	}
	header.Set("Date", c.requestTime().Format(http.TimeFormat))
	if err != nil {
		f := failureOf(err)
		c.log(f.status, f.code, err)
		h.fail(w, c, f, id)
		return
	}
	c.log(rep.status, "", nil)
	h.answer(w, c, rep)
}

// The method log writes the log line of a request. If the status is 500 or higher, the line also contains the
// error, which the client never gets.
func (c *call) log(status int, code string, err error) {
	if !c.o.Logger.Enabled(c.ctx, slog.LevelInfo) {
		return
	}
	attrs := []slog.Attr{slog.String("method", c.r.Method), slog.String("path", c.r.URL.Path)}
	for _, v := range [][2]string{
		{"restype", c.query.Get("restype")}, {"comp", c.query.Get("comp")}, {"action", c.r.Header.Get(headerAction)},
		{"id", c.r.Header.Get(headerID)}, {"proposed", c.r.Header.Get(headerProposed)}, {"code", code},
	} {
		if v[1] != "" {
			attrs = append(attrs, slog.String(v[0], v[1]))
		}
	}
	attrs = append(attrs, blameAttrs(err)...)
	attrs = append(attrs, slog.Int("status", status))
	if status >= http.StatusInternalServerError {
		attrs = append(attrs, slog.Any("error", err))
	}
	c.o.Logger.LogAttrs(c.ctx, slog.LevelInfo, "request", attrs...)
}

// blameAttrs returns log attributes for the header or the query parameter that the error err names.
func blameAttrs(err error) (attrs []slog.Attr) {
	var f *failure
	if !errors.As(err, &f) {
		return nil
	}
	for _, d := range f.details {
		switch d.name {
		case "HeaderName":
			attrs = append(attrs, slog.String("header", d.value))
		case "QueryParameterName":
			attrs = append(attrs, slog.String("parameter", d.value))
		}
	}
	return attrs
}

// serve parses the request, authorizes it, and executes it.
func (c *call) serve() (*reply, error) {
	if err := c.chooseVersion(); err != nil {
		return nil, err
	}
	if err := c.locate(); err != nil {
		return nil, err
	}
	cancel, err := c.limitTime()
	if err != nil {
		return nil, err
	}
	defer cancel()
	defer func() { c.quota.release(c.reserved) }()
	op, err := c.route()
	if err != nil {
		return nil, err
	}
	if err := c.admit(op); err != nil {
		return nil, err
	}
	if err := c.refuseUnserved(); err != nil {
		return nil, err
	}
	if s := c.header(headerID); s != "" {
		if c.id, err = lease.ParseID(s); err != nil || c.id.IsZero() {
			return nil, badHeader(c.r, headerID)
		}
	}
	return op.run(c)
}

func (h *Handler) answer(w http.ResponseWriter, c *call, rep *reply) {
	header := w.Header()
	for name, values := range rep.header {
		header[name] = values
	}
	setHeader(header, headerVersion, c.version.String())
	if c.r.Method != http.MethodHead && rep.status != http.StatusNoContent && header.Get("Content-Length") == "" {
		header.Set("Content-Length", strconv.FormatInt(rep.body.size(), 10))
	}
	setHeaderCase(c.r.Context(), header)
	w.WriteHeader(rep.status)
	if c.r.Method == http.MethodHead {
		return
	}
	for _, b := range rep.body {
		if _, err := w.Write(b); err != nil {
			return // the client is gone
		}
	}
}

// fail writes the answer to a request that fails. The answer to HEAD, or with the status 304, has no body.
func (h *Handler) fail(w http.ResponseWriter, c *call, f *failure, id string) {
	header := w.Header()
	setHeader(header, headerVersion, c.version.String())
	setHeader(header, headerErrorCode, f.code)
	for _, v := range f.header {
		header.Set(v[0], v[1])
	}
	setReason(c.r.Context(), f.status, f.text)
	if c.r.Method == http.MethodHead || f.status == http.StatusNotModified {
		setHeaderCase(c.r.Context(), header)
		w.WriteHeader(f.status)
		return
	}
	body := f.xmlBody(id, c.requestTime())
	header.Set("Content-Type", "application/xml")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	setHeaderCase(c.r.Context(), header)
	w.WriteHeader(f.status)
	_, _ = w.Write(body) // fails if the client is gone
}

// validRequestID reports whether s is a valid request ID of a client, which the answer then repeats: "no more
// than 1,024 visible ASCII characters".
func validRequestID(s string) bool {
	if s == "" || len(s) > 1024 {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

func (c *call) enter() (leave func(), err error) { return c.gates.enter(c.ctx, c.leaseName()) }

func (c *call) askAuthority(req lease.Request) (lease.Result, error) {
	res, err := c.auth.Do(c.ctx, c.leaseName(), req)
	if c.ownLeases && !res.Now.IsZero() {
		c.now = res.Now
	}
	return res, err
}

// requestTime returns the time of the request. If the Handler created the authority, it is the latest time
// that the authority reported for the request. If it has reported no time yet, or if the Handler did not
// create it, the first call reads the Handler's clock, and later calls return the same time.
func (c *call) requestTime() time.Time {
	if c.now.IsZero() {
		c.now = c.o.Clock.Now()
	}
	return c.now
}

// The method do sends a request to the authority. If the authority refuses the request, the returned error is
// a *failure.
func (c *call) do(req lease.Request) (lease.Result, error) {
	req.Version = c.version
	res, err := c.askAuthority(req)
	if err != nil {
		return res, c.refused(req.Action, res, err)
	}
	if res.Now.IsZero() {
		res.Now = c.o.Clock.Now() // the authority returned no record
	}
	return res, nil
}

// wouldRefuse returns a failure if the lease does not admit the given read or write. This method is for
// requests that fail in any case. Such a request must not change the lease, so wouldRefuse only reads the
// lease. For example, if a failed write without a lease ID cleared an expired lease, the holder could no
// longer renew the lease.
func (c *call) wouldRefuse(use lease.Action) error {
	res, err := c.do(lease.Request{Action: lease.ActionRead})
	if err != nil {
		return err
	}
	if _, err = lease.Step(res.Record, lease.Request{Action: use, ID: c.id}, res.Now); err != nil {
		return c.refused(use, res, err)
	}
	return nil
}

// endOldLease ends the lease of an earlier resource of the same name, because a new resource must begin
// without a lease. It returns the time of the authority.
func (c *call) endOldLease() (time.Time, error) {
	for range 3 { // a repetition is needed only if another request leases the name in between
		res, err := c.askAuthority(lease.Request{Action: lease.ActionWrite})
		if err == nil {
			if res.Now.IsZero() {
				return c.o.Clock.Now(), nil
			}
			return res.Now, nil
		}
		if lease.CodeOf(err) != lease.ErrIDMissing {
			return time.Time{}, c.refused(lease.ActionWrite, res, err)
		}
		if res, err := c.askAuthority(lease.Request{Action: lease.ActionBreak, Period: lease.Grace(0)}); err != nil && !lease.CodeOf(err).Refusal() {
			return time.Time{}, c.refused(lease.ActionBreak, res, err)
		}
	}
	return time.Time{}, fmt.Errorf("blobtest: the lease of the new resource %q was acquired by another request after each of three breaks", c.leaseName())
}
