package blobtest

import (
	"encoding/base64"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
)

// These constants describe the account of the storage emulator, which every SDK knows.
const (
	// DefaultAccount is the name of the account.
	DefaultAccount = "devstoreaccount1"

	// DefaultKey is the key of the account. It is published, so it protects nothing.
	DefaultKey = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// Options are the settings of a Handler or a Server. A nil *Options or a zero field means the default.
type Options struct {
	// Accounts maps account names to base64 keys. Each account has its own leases. Default: the emulator's
	// account.
	Accounts map[string]string

	// Containers lists the names of the containers that the server creates in every account. It creates these
	// containers at the start and after each [Handler.Reset]. Default: none.
	Containers []string

	// AllowAnyone turns off authorization, so that the server verifies neither signatures nor tokens.
	// Default: requests must be signed.
	AllowAnyone bool

	// PublishedTable makes the server answer as in the documented table of outcomes, with the status 409, if
	// the lease ID of a request is wrong. This applies to reads and writes if the lease is in the state
	// Leased, and to reads if the lease is in the state Breaking. Default: the status is 412, as in the real
	// service.
	PublishedTable bool

	// Clock is the server's clock, for its answers, for shared access signatures, and for an authority that
	// the server creates. It must show a time after the zero time. Default: a clock that shows the time at
	// which the server was created, and moves only when [Server.Advance] or its method Step is called.
	Clock *leasefault.Clock

	// DefaultVersion is the service version of a request that names no version. Default: 2009-09-19, as
	// in a new account of the service. In that version, leases follow older rules.
	DefaultVersion lease.Version

	// CORS contains the rules for cross-origin requests. The server applies the first rule that matches a
	// request. Default: no rules, so the server sends no headers for cross-origin requests.
	CORS []CORSRule

	// MaxBody is the largest request body, in bytes. Default: 64 MiB, or less if MaxBlob or MaxTotal is
	// smaller.
	MaxBody int64

	// MaxBlob is the largest blob, in bytes. Default: 256 MiB, but at most MaxTotal and at least MaxBody.
	MaxBlob int64

	// MaxTotal limits how much data the server stores, in bytes. The following data counts toward the limit:
	//
	//   - contents, even if a snapshot or a copy shares its content with the source
	//   - uncommitted blocks, metadata and properties
	//   - 4 KiB for every container and blob, 1 KiB for every content, 256 bytes for every block
	//   - the bodies of requests in progress, so replacing a content needs space for both contents
	//
	// Leases do not count, because the authority stores them. A request that would exceed the limit gets the
	// status 507 and the code InsufficientStorage. The real service has no such limit. Default: 1 GiB, or
	// MaxBlob if larger.
	MaxTotal int64

	// Timeout limits how long the server processes a request, including the time to read its body. A request
	// can shorten this time, but not extend it, with a query such as timeout=10 (in seconds). A [Server]
	// closes the connection if it has not written the answer within twice the Timeout. Default: 30 s.
	Timeout time.Duration

	// Logger receives one line for every request. Default: none.
	Logger *slog.Logger
}

// withDefaults returns a copy of o with defaults for all zero fields. An invalid field is a
// [*lease.FieldError].
func (o *Options) withDefaults() (Options, error) {
	var r Options
	if o != nil {
		r = *o
	}
	if r.Accounts == nil {
		r.Accounts = map[string]string{DefaultAccount: DefaultKey}
	}
	if r.Clock == nil {
		r.Clock = leasefault.NewClockAt(time.Now(), 0)
	}
	if r.DefaultVersion == 0 {
		r.DefaultVersion = 2009_09_19
	}
	atMost := func(size int64, bounds ...int64) int64 {
		for _, b := range bounds {
			if b > 0 {
				size = min(size, b)
			}
		}
		return size
	}
	if r.MaxBody == 0 {
		r.MaxBody = atMost(64<<20, r.MaxBlob, r.MaxTotal)
	}
	if r.MaxBlob == 0 {
		r.MaxBlob = max(r.MaxBody, atMost(256<<20, r.MaxTotal))
	}
	if r.MaxTotal == 0 {
		r.MaxTotal = max(1<<30, r.MaxBlob)
	}
	if r.Timeout == 0 {
		r.Timeout = 30 * time.Second
	}
	if r.Logger == nil {
		r.Logger = slog.New(slog.DiscardHandler)
	}
	return r, r.valid()
}

func (o *Options) valid() error {
	bad := func(field, value, bound string) error {
		return &lease.FieldError{Field: "Options." + field, Value: value, Bound: bound, Code: lease.ErrOption}
	}
	if len(o.Accounts) == 0 {
		return bad("Accounts", "none", "must hold at least one account")
	}
	for name, key := range o.Accounts {
		if !accountName(name) {
			return bad("Accounts", strconv.Quote(name), "must have names of 3 to 24 lower-case letters and digits")
		}
		if k, err := base64.StdEncoding.DecodeString(key); err != nil || len(k) == 0 {
			return bad("Accounts", "the key of "+name, "must be base64 and not empty")
		}
	}
	for i, name := range o.Containers {
		field := "Containers[" + strconv.Itoa(i) + "]"
		switch {
		case !systemContainer(name) && checkContainerName(name) != nil:
			return bad(field, strconv.Quote(name), "must have 3 to 63 lower-case letters, digits and single dashes between them, or be $root, $web or $logs")
		case slices.Contains(o.Containers[:i], name):
			return bad(field, strconv.Quote(name), "must not be named twice")
		}
	}
	for i, rule := range o.CORS {
		field := "CORS[" + strconv.Itoa(i) + "]."
		switch {
		case len(rule.Origins) == 0:
			return bad(field+"Origins", "none", "must hold at least one")
		case len(rule.Methods) == 0:
			return bad(field+"Methods", "none", "must hold at least one")
		case rule.MaxAge < 0:
			return bad(field+"MaxAge", rule.MaxAge.String(), "must not be negative")
		}
	}
	if now := o.Clock.Now(); !now.After(time.Time{}) {
		return bad("Clock", now.String(), "must be after the zero time")
	}
	if err := limits.Check(lease.Request{Action: lease.ActionRead, Version: o.DefaultVersion}); err != nil {
		return bad("DefaultVersion", o.DefaultVersion.String(), "must be a date from 2009-09-19 on")
	}
	for _, size := range []struct {
		field string
		n     int64
	}{{"MaxBody", o.MaxBody}, {"MaxBlob", o.MaxBlob}, {"MaxTotal", o.MaxTotal}} {
		if size.n < 0 {
			return bad(size.field, strconv.FormatInt(size.n, 10), "must not be negative")
		}
	}
	containers := int64(len(o.Accounts)*len(o.Containers)) * placeSize
	switch {
	case o.MaxBlob < o.MaxBody:
		return bad("MaxBlob", strconv.FormatInt(o.MaxBlob, 10), "must not be below MaxBody, "+strconv.FormatInt(o.MaxBody, 10))
	case o.MaxTotal < o.MaxBlob:
		return bad("MaxTotal", strconv.FormatInt(o.MaxTotal, 10), "must not be below MaxBlob, "+strconv.FormatInt(o.MaxBlob, 10))
	case o.MaxTotal < containers:
		return bad("MaxTotal", strconv.FormatInt(o.MaxTotal, 10), "must be at least "+strconv.FormatInt(containers, 10)+", for Containers in every account")
	case o.Timeout < 0:
		return bad("Timeout", o.Timeout.String(), "must not be negative")
	}
	return nil
}

func accountName(s string) bool {
	if len(s) < 3 || len(s) > 24 {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}
