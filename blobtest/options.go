package blobtest

import (
	"encoding/base64"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/fencedlease/lease"
)

// The account of the storage emulator, which every SDK knows.
const (
	// DefaultAccount is the name of the account.
	DefaultAccount = "devstoreaccount1"

	// DefaultKey is its key. The key is published, and protects nothing.
	DefaultKey = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// Options are the settings of a server. Nil stands for the zero Options. The zero value of a field
// stands for the default that the field names.
type Options struct {
	// Accounts maps the names of accounts to their keys, in base64. Different accounts have
	// different leases. Default: the emulator's account.
	Accounts map[string]string

	// Containers are the names of containers that every account has from the start, and again
	// after [Handler.Reset]. Default: none.
	Containers []string

	// AllowAnyone turns authorization off. Requests need no signature, and a signature or a token is
	// not verified. Default: requests must be signed.
	AllowAnyone bool

	// PublishedTable follows the published table of uses in the three cells where the service
	// does not. A write or a read with a wrong ID on a leased blob, and a read with a wrong ID on a
	// breaking blob, are then answered 409. Default: 412, as the service answers.
	PublishedTable bool

	// Clock is the time of answers and of shared access signatures, and of the leases if the server
	// makes its own authority. It must show a time after the zero time. Default: a clock that stands
	// still at the time at which the server was made.
	Clock *Clock

	// DefaultVersion is the service version of a request that names none. Default: 2009-09-19, as in
	// a new account of the service. That is the old dialect of leases.
	DefaultVersion lease.Version

	// CORS are the rules for cross-origin requests. The first rule that matches a request counts.
	// Default: none; then no header of cross-origin resource sharing is sent.
	CORS []CORSRule

	// MaxBody is the size of the largest request body, in bytes. Default: 64 MiB, or MaxBlob or
	// MaxTotal if that is less.
	MaxBody int64

	// MaxBlob is the size of the largest blob, in bytes. Default: 256 MiB, or MaxTotal if that is
	// less, but MaxBody at least.
	MaxBlob int64

	// MaxTotal limits what the server keeps, in bytes. It counts
	//
	//   - contents, including those that snapshots and copies share with their source
	//   - uncommitted blocks, metadata and properties
	//   - 4 KiB for every container and blob, 1 KiB for every content, 256 bytes for every block
	//   - the bodies of requests under way, so replacing a content needs space for both
	//
	// It does not count leases, which the authority keeps. A request that would exceed it is
	// answered 507 InsufficientStorage. The service has no such limit and no such answer. Default:
	// 1 GiB, or MaxBlob if that is more.
	MaxTotal int64

	// Timeout limits a request until it is answered, including the time to read its body. The query
	// parameter timeout can only shorten it. A client of a [Server] has as much time again to read
	// the answer. Default: 30 s.
	Timeout time.Duration

	// Logger gets one line for every request. Default: none.
	Logger *slog.Logger
}

// withDefaults returns a copy in which every default is set, or a [*lease.FieldError].
func (o *Options) withDefaults() (Options, error) {
	var r Options
	if o != nil {
		r = *o
	}
	if r.Accounts == nil {
		r.Accounts = map[string]string{DefaultAccount: DefaultKey}
	}
	if r.Clock == nil {
		r.Clock = NewClock(time.Now())
	}
	if r.DefaultVersion == 0 {
		r.DefaultVersion = lease.Version20090919
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
	if err := o.DefaultVersion.Validate(); err != nil {
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
	switch {
	case o.MaxBlob < o.MaxBody:
		return bad("MaxBlob", strconv.FormatInt(o.MaxBlob, 10), "must not be below MaxBody, "+strconv.FormatInt(o.MaxBody, 10))
	case o.MaxTotal < o.MaxBlob:
		return bad("MaxTotal", strconv.FormatInt(o.MaxTotal, 10), "must not be below MaxBlob, "+strconv.FormatInt(o.MaxBlob, 10))
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
