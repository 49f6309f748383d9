package natslease

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fencedlease/lease"
)

// checkBucket returns a [*lease.FieldError] if the configuration of the stream is not suitable for leases,
// for example because NATS would remove records by itself. checkBucket accepts AllowDirect, which NATS sets
// by default, because the Store never uses direct reads.
func checkBucket(c jetstream.StreamConfig, subjects string) error {
	for _, rule := range []struct {
		broken              bool
		field, value, bound string
	}{
		{c.Mirror != nil, "Mirror", "set", "must not be set: a mirror may be behind its origin"},
		{len(c.Sources) > 0, "Sources", strconv.Itoa(len(c.Sources)), "must be none: what a source delivers is not compared before it is written"},
		{!slices.Equal(c.Subjects, []string{subjects}), "Subjects", strconv.Quote(strings.Join(c.Subjects, ", ")), "must be " + subjects + ": is it a key-value bucket?"},
		{c.Storage != jetstream.FileStorage, "Storage", c.Storage.String(), "must be file: a restart would lose the leases and their tokens"},
		{c.PersistMode == jetstream.AsyncPersistMode, "PersistMode", "async", "must be the default: a write would be acknowledged before it is made"},
		{c.MaxAge != 0, "TTL", c.MaxAge.String(), "must be 0: a record that is removed ends its lease, however long it was to last"},
		{c.MaxMsgsPerSubject <= 0, "History", strconv.FormatInt(c.MaxMsgsPerSubject, 10), "must be at least 1"},
		{c.DiscardNewPerSubject, "DiscardNewPerSubject", "true", "must be false: a record could not be replaced"},
		{c.Discard == jetstream.DiscardOld && (c.MaxBytes > 0 || c.MaxMsgs > 0), "Discard", "old", "must be new where there is a limit of bytes or messages: old records would be removed"},
		{c.Retention != jetstream.LimitsPolicy, "Retention", c.Retention.String(), "must be limits"},
		{c.SubjectTransform != nil, "SubjectTransform", "set", "must not be set"},
		{c.AllowMsgCounter, "AllowMsgCounter", "true", "must be false"},
		{c.NoAck, "NoAck", "true", "must be false"},
		{c.Sealed, "Sealed", "true", "must be false: nothing can be written"},
	} {
		if rule.broken {
			return &lease.FieldError{Field: "Bucket." + rule.field, Value: rule.value, Bound: rule.bound, Code: lease.ErrOption}
		}
	}
	return nil
}

// needMajor and needMinor are the version of the oldest server that a Store can use. Older servers do not
// support the header with which the Store confirms a read.
const needMajor, needMinor = 2, 12

// checkVersion returns a [*lease.FieldError] if the server of the connection is too old.
func checkVersion(nc *nats.Conn) error {
	var major, minor int
	version := nc.ConnectedServerVersion()
	if version == "" { // The client is not connected. The next request reports the missing connection.
		return nil
	}
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n == 2 && (major > needMajor || major == needMajor && minor >= needMinor) {
		return nil
	}
	return &lease.FieldError{Field: "Server.Version", Value: strconv.Quote(version), Bound: fmt.Sprintf("must be %d.%d or newer, on every server of the cluster", needMajor, needMinor), Code: lease.ErrOption}
}

func (e *backend) checkStream(ctx context.Context) error {
	ctx, cancel := e.withTimeout(ctx)
	defer cancel()
	call := e.call("look at", "", e.api+"STREAM.INFO."+e.stream)
	s, err := sendRepeatedly(ctx, func(ctx context.Context) (jetstream.Stream, error) { return e.js.Stream(ctx, e.stream) })
	if err != nil {
		return call.failed(err)
	}
	if err := checkVersion(e.nc); err != nil { // the client is connected now
		return lease.Permanent(fmt.Errorf("natslease: %w", err))
	}
	if err := checkBucket(s.CachedInfo().Config, e.subject(">")); err != nil {
		return lease.Permanent(fmt.Errorf("natslease: bucket %q: %w; give the leases a bucket of their own: nats kv add leases --replicas 3", e.bucket, err))
	}
	return nil
}
