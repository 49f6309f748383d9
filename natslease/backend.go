package natslease

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/internal/clock"
)

// A backend implements [engine.Backend] over a bucket of NATS. The version of a lease is the revision of its
// key, which is the sequence number of the key's last message in the stream. No two messages have the same
// number, because sequence numbers keep rising even after deletes and purges.
type backend struct {
	js            jetstream.JetStream
	nc            *nats.Conn
	bucket        string
	stream        string // the stream of the bucket
	api           string // prefix of the subjects of JetStream API requests
	publishPrefix string // prefix of the subjects of published messages; empty if api is the default prefix
	floor         uint64 // the epoch of Options.Floor
	gate          *engine.Gate
	server        engine.Server
	checkOnce     func(context.Context) error
}

// mostWrites is the maximum number of requests that a Store sends at a time. Nearly all requests write to the
// bucket, because a read is confirmed by a write. A server carries out the writes of a bucket one after the
// other, so further requests would only wait at the server, where a renewal cannot overtake them.
const mostWrites = 32

func newBackend(js jetstream.JetStream, bucket string) *backend {
	e := &backend{js: js, nc: js.Conn(), bucket: bucket, stream: "KV_" + bucket, api: jetstream.DefaultAPIPrefix, gate: engine.NewGate(mostWrites)}
	e.checkOnce = engine.CheckOnce(e.checkStream)
	o := js.Options()
	if o.Domain != "" { // the same rules as in package jetstream
		o.APIPrefix = "$JS." + o.Domain + ".API."
	}
	if o.APIPrefix != "" {
		e.api = strings.TrimSuffix(o.APIPrefix, ".") + "."
		e.publishPrefix = e.api
	}
	return e
}

// The method subject returns the NATS subject of a key.
func (e *backend) subject(key string) string { return "$KV." + e.bucket + "." + key }

// emptyValue is the value of a new key. A new key has no epoch of its own, so lowestEpoch supplies one. The
// write that creates a key must not grant the lease, because the client would have to choose the token before
// that write. In the meantime, other clients could create the key, grant newer tokens, and delete the key, so
// that the late write would grant an old token.
var emptyValue = engine.Retained{}

// Load reads the key from the leader of the stream, or creates the key if it does not exist. Before Load
// returns a value, it confirms that the value is current, because a server that is no longer the leader still
// answers reads until it notices this. If Load creates the key, no confirmation is needed.
func (e *backend) Load(ctx context.Context, name string) (found engine.Entry, err error) {
	if err := e.checkOnce(ctx); err != nil {
		return engine.Entry{}, err
	}
	err = e.readCurrent(ctx, encode(name), func(m message) (err error) {
		if m.absent() {
			found, err = e.put(ctx, m.key, m.revision, emptyValue)
		} else if found, err = e.entry(m); err == nil {
			err = e.confirm(ctx, m.key, m.revision)
		}
		return err
	})
	if err != nil {
		return engine.Entry{}, err
	}
	return found, nil
}

// Open calls Load. If Open created the key without reading it first, NATS would refuse the write whenever the
// key exists or was deleted, and Open would then have to read the key after all.
func (e *backend) Open(ctx context.Context, name string) (engine.Entry, error) {
	return e.Load(ctx, name)
}

// Swap replaces the value of a key only if the revision of the key still equals the parameter old. Otherwise
// Swap returns an empty entry and [lease.ErrConflict].
func (e *backend) Swap(ctx context.Context, name, old string, next engine.Retained) (engine.Entry, error) {
	revision, err := strconv.ParseUint(old, 10, 63)
	if err != nil || revision == 0 {
		return engine.Entry{}, fmt.Errorf("natslease: version %q is not of this store", old)
	}
	return e.put(ctx, encode(name), revision, next)
}

// Revision implements [engine.RevisionReader] with a write, because a server that is no longer the leader
// could answer a read. The revision is that of the whole stream, because the stream numbers the writes of all
// keys.
func (e *backend) Revision(ctx context.Context) (int64, error) {
	revision, err := e.publish(ctx, "mark", confirmKey, nil)
	return int64(revision), err
}

// readCurrent reads a key and calls f with the message. If f returns [lease.ErrConflict], readCurrent reads
// the key again, because the message might be out of date. If ctx ends before that read is finished, the
// error also tells the last conflict.
func (e *backend) readCurrent(ctx context.Context, key string, f func(message) error) error {
	ctx, cancel := e.withTimeout(ctx)
	defer cancel()
	var conflict error // the last conflict
	for n := 1; ; n++ {
		m, err := e.read(ctx, key)
		if err == nil {
			err = f(m)
		}
		if errors.Is(err, lease.ErrConflict) {
			conflict = err
			if err = pause(ctx, n); err == nil {
				continue
			}
		}
		if err == nil || conflict == nil || ctx.Err() == nil {
			return err
		}
		why := "the last answer was not current; check that no server is cut off from the leader"
		if errors.Is(conflict, errBusy) {
			why = "the last answer could not be confirmed, because " + conflict.Error()
		}
		return fmt.Errorf("natslease: read key %q of bucket %q: %w; %s", key, e.bucket, err, why)
	}
}

type message struct {
	key      string
	revision uint64 // 0 if there is no message
	header   nats.Header
	data     []byte
}

// The messages in a bucket have these headers.
const (
	operationHeader = "KV-Operation"       // set by a client that deletes or purges the key
	reasonHeader    = "Nats-Marker-Reason" // set by a server that deletes or purges the key
	writerHeader    = "Lease-Writer"       // set by put
	writer          = "natslease"          // the value of writerHeader
)

// The method absent reports whether the key does not exist or was deleted.
func (m message) absent() bool {
	return m.revision == 0 || m.header.Get(operationHeader) != "" || m.header.Get(reasonHeader) != ""
}

// attemptTimeout is how long a client waits for the answer to a read-only request before it repeats the
// request, because no server answers a request that arrives while the stream has no leader.
const attemptTimeout = time.Second

// The method read returns the last message under a key, from the leader of the stream. The message can be
// stale, so the caller must confirm it.
func (e *backend) read(ctx context.Context, key string) (message, error) {
	subject := e.api + "STREAM.MSG.GET." + e.stream
	call := e.call("read", key, subject)
	request, err := json.Marshal(map[string]string{"last_by_subj": e.subject(key)})
	if err != nil {
		return message{}, err
	}
	res, err := sendRepeatedly(ctx, func(ctx context.Context) (*nats.Msg, error) { return e.nc.RequestWithContext(ctx, subject, request) })
	if err != nil {
		return message{}, call.failed(err)
	}
	m, err := parse(key, res.Data)
	if err == nil {
		call.answered()
	}
	return m, call.failed(err)
}

// sendRepeatedly calls send, and again after each timeout until ctx is done. sendRepeatedly returns the
// result of the last call. The request must be read-only, because NATS can carry it out more than once.
func sendRepeatedly[T any](ctx context.Context, send func(context.Context) (T, error)) (T, error) {
	for {
		attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
		answer, err := send(attempt)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return answer, err
		}
	}
}

// The function parse decodes the answer to a read request.
func parse(key string, answer []byte) (message, error) {
	var res struct {
		Error   *jetstream.APIError `json:"error"`
		Message *struct {
			Sequence uint64 `json:"seq"`
			Header   []byte `json:"hdrs"`
			Data     []byte `json:"data"`
		} `json:"message"`
	}
	m := message{key: key}
	switch err := json.Unmarshal(answer, &res); {
	case err != nil:
		return m, fmt.Errorf("an answer that is not of JetStream: %w", err)
	case res.Error != nil && res.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return m, nil
	case res.Error != nil:
		return m, res.Error
	case res.Message == nil:
		return m, errors.New("an answer of JetStream without a message")
	}
	m.revision, m.data = res.Message.Sequence, res.Message.Data
	if len(res.Message.Header) > 0 {
		var err error
		if m.header, err = nats.DecodeHeadersMsg(res.Message.Header); err != nil {
			return m, err
		}
	}
	return m, nil
}

// The method confirm returns nil if the given revision of the key was current at some time during the call.
// If the method cannot prove this, it returns an error, usually [lease.ErrConflict]. The proof is a write to
// the key confirmKey, which succeeds only if the given revision is still the last revision of the key. Only a
// leader that a majority of servers follows can acknowledge the write, and such a leader has received every
// earlier revision.
func (e *backend) confirm(ctx context.Context, key string, revision uint64) error {
	_, err := e.publish(ctx, "confirm", confirmKey, nil, jetstream.WithExpectLastSequenceForSubject(revision, e.subject(key)))
	return err
}

// The method put replaces the value of a key if the last revision of the key is the given revision. A
// revision of 0 means that the key must not exist, and that put creates it.
func (e *backend) put(ctx context.Context, key string, revision uint64, next engine.Retained) (engine.Entry, error) {
	value, err := next.MarshalJSON()
	if err != nil {
		return engine.Entry{}, err
	}
	written, err := e.publish(ctx, "write", key, value, jetstream.WithExpectLastSequencePerSubject(revision))
	if err != nil {
		return engine.Entry{}, err
	}
	return e.newEntry(next, written, true), nil
}

// While the stream has no leader, no server receives a published message. The client then publishes the
// message again, up to noLeaderTries times, with a pause of noLeaderWait before each attempt.
const noLeaderWait, noLeaderTries = 100 * time.Millisecond, 20

// NATS refuses a message while it carries out another write of the same key. The client then sends the
// message again, up to busyTries times.
const busyTries = 20

// errBusy means that NATS refused every attempt to write a key, because other writes of the key were in
// progress. errBusy wraps [lease.ErrConflict].
var errBusy error = busyError{}

type busyError struct{}

func (busyError) Error() string { return "other writes of the key were in progress" }
func (busyError) Unwrap() error { return lease.ErrConflict }

// The method publish writes a value if the given conditions hold, and returns the revision of the new value.
// If the error is [lease.ErrConflict], the value was certainly not written.
func (e *backend) publish(ctx context.Context, what, key string, value []byte, condition ...jetstream.PublishOpt) (uint64, error) {
	subject := e.publishPrefix + e.subject(key)
	call := e.call(what, key, subject)
	options := append(condition, jetstream.WithRetryWait(noLeaderWait), jetstream.WithRetryAttempts(noLeaderTries))
	for busy := 0; ; busy++ {
		m := &nats.Msg{Subject: subject, Data: value, Header: nats.Header{writerHeader: {writer}}}
		ack, err := e.js.PublishMsg(ctx, m, options...)
		if err == nil {
			call.answered()
			return ack.Sequence, nil
		}
		var refused *jetstream.APIError
		if !errors.As(err, &refused) {
			err = call.failed(err)
			if busy > 0 {
				// NATS may have written the value at the last attempt. So err must not wrap a conflict,
				// because a conflict means that the value was certainly not written.
				err = fmt.Errorf("%w; before that, %v", err, errBusy)
			}
			return 0, err
		}
		switch refused.ErrorCode {
		case jetstream.JSErrCodeStreamWrongLastSequence:
			call.answered()
			return 0, lease.ErrConflict
		case jetstream.JSErrCodeStreamWrongLastSequenceConstant:
			call.answered()
			if busy == busyTries || pause(ctx, busy) != nil {
				return 0, errBusy
			}
		default:
			return 0, call.failed(err)
		}
	}
}

// The function pause waits for a random time before the n-th retry. The longest possible time grows with n,
// up to 20 ms. If ctx is done, the function returns ctx.Err().
func pause(ctx context.Context, n int) error {
	return clock.Sleep(ctx, clock.System{}, rand.N(min(time.Duration(n+1)*time.Millisecond, 20*time.Millisecond)))
}

// withTimeout adds the default timeout of the client to a context without a deadline.
func (e *backend) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, cmp.Or(e.js.Options().DefaultTimeout, 5*time.Second))
}

// The method entry decodes the value of a key.
func (e *backend) entry(m message) (engine.Entry, error) {
	var kept engine.Retained
	if err := kept.UnmarshalJSON(m.data); err != nil {
		return engine.Entry{}, fmt.Errorf("natslease: key %q of bucket %q: %w; correct it with nats kv put, or free the lease with nats kv del %[2]s %[1]s", m.key, e.bucket, err)
	}
	return e.newEntry(kept, m.revision, m.header.Get(writerHeader) == writer), nil
}

// newEntry returns the entry for a value and its revision. If the value was written by hand, byStore is
// false. The epoch of a new key, or of a value that was written by hand, is at least the floor plus
// lowestEpoch. Such an epoch is new even after a deletion, because every grant of a Store with this floor has
// an epoch below the floor plus the revision of the grant.
func (e *backend) newEntry(kept engine.Retained, revision uint64, byStore bool) engine.Entry {
	if kept == emptyValue || !byStore {
		kept.Record.Epoch = max(kept.Record.Epoch, min(e.floor+lowestEpoch(revision), math.MaxInt64))
	}
	return engine.Entry{Retained: kept, Version: strconv.FormatUint(revision, 10), Revision: int64(revision)}
}

// lowestEpoch returns the lowest epoch that a key can have at the given revision. A new key has this epoch.
// If somebody has written a value with a lower epoch by hand, the Store uses this epoch instead.
//
// The revision of a grant is always higher than its epoch. For example, if a key is created at revision 100,
// it has the epoch 99. The first grant has the epoch 100, and is written at revision 101 or later. Each later
// grant raises the epoch by one and the revision by at least one. If the key is deleted at revision 200, all
// its epochs are below 200. If the key is then created again at revision 201, it has the epoch 200, which is
// higher than all old epochs.
func lowestEpoch(revision uint64) uint64 { return revision - 1 }
