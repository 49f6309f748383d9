package natslease

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/observe"
)

// An engine is a bucket of NATS as package observe wants it. The version of a lease is the revision
// of its key. That is the sequence of the message in the stream of the bucket, which no two messages
// share, and which goes on through deletes and purges.
type engine struct {
	js     jetstream.JetStream
	nc     *nats.Conn
	bucket string
	stream string // of the bucket
	api    string // prefix of the subjects of the API
	to     string // prefix of the subjects that are published to: api, or nothing if that is the default
}

func newEngine(js jetstream.JetStream, bucket string) *engine {
	e := &engine{js: js, nc: js.Conn(), bucket: bucket, stream: "KV_" + bucket, api: jetstream.DefaultAPIPrefix}
	switch o := js.Options(); { // as package jetstream does
	case o.Domain != "":
		e.api = "$JS." + o.Domain + ".API."
		e.to = e.api
	case o.APIPrefix != "":
		e.api = strings.TrimSuffix(o.APIPrefix, ".") + "."
		e.to = e.api
	}
	return e
}

// subject returns the subject of a key.
func (e *engine) subject(key string) string { return "$KV." + e.bucket + "." + key }

// nobody is what a key is created with. It says no epoch: see floor. A key is never created with a
// lease: a writer that saw that there was none, and slept through a whole life of the key up to its
// removal, would grant an old token.
var nobody = observe.Kept{}

// Load reads the key from the leader of the stream, and creates it if it does not exist.
//
// A server that was the leader answers until it notices that it no longer is. So what was read is
// confirmed before it is believed. The creation of a key needs no other confirmation.
func (e *engine) Load(ctx context.Context, name string) (found observe.Entry, err error) {
	err = e.current(ctx, encode(name), func(m message) (err error) {
		if m.absent() {
			found, err = e.put(ctx, m.key, m.revision, nobody)
		} else if found, err = e.entry(m); err == nil {
			err = e.confirm(ctx, m.key, m.revision)
		}
		return err
	})
	if err != nil {
		return observe.Entry{}, err
	}
	return found, nil
}

// Open is Load: it saves nothing to create a key without looking whether there is one.
func (e *engine) Open(ctx context.Context, name string) (observe.Entry, error) {
	return e.Load(ctx, name)
}

// Swap puts next in the place of the version old. Nothing comes with a conflict.
func (e *engine) Swap(ctx context.Context, name, old string, next observe.Kept) (observe.Entry, error) {
	revision, err := strconv.ParseUint(old, 10, 63)
	if err != nil || revision == 0 {
		return observe.Entry{}, fmt.Errorf("natslease: version %q is not of this store", old)
	}
	return e.put(ctx, encode(name), revision, next)
}

// current calls f with what is under a key, until f has found that this is current: it returns
// [lease.ErrConflict] otherwise.
func (e *engine) current(ctx context.Context, key string, f func(message) error) error {
	ctx, cancel := e.bounded(ctx)
	defer cancel()
	for stale := 0; ; {
		m, err := e.read(ctx, key)
		if err == nil {
			err = f(m)
		}
		if errors.Is(err, lease.ErrConflict) {
			stale++
			err = pause(ctx, stale)
		} else if err == nil || stale == 0 || ctx.Err() == nil {
			return err
		}
		if err != nil {
			return fmt.Errorf("natslease: read key %q of bucket %q: %d answers were not current: %w; see that no server is cut off from the leader", key, e.bucket, stale, err)
		}
	}
}

// A message is what is kept under a key.
type message struct {
	key      string
	revision uint64 // 0: there is none, and there was none since the last purge
	header   nats.Header
	data     []byte
}

// Headers of the messages in a bucket.
const (
	operationHeader = "KV-Operation"       // the client's mark of a delete or a purge
	reasonHeader    = "Nats-Marker-Reason" // the server's
	writerHeader    = "Lease-Writer"       // set by put
	writer          = "natslease"          // its value
	lastConsumer    = "Nats-Last-Consumer" // of a heartbeat: what the consumer has sent
	statusHeader    = "Status"             // of a message that is not of the stream
	heartbeatStatus = "100"                // of a heartbeat
)

// absent reports whether the key does not exist, or was deleted.
func (m message) absent() bool {
	return m.revision == 0 || m.header.Get(operationHeader) != "" || m.header.Get(reasonHeader) != ""
}

// resend is how long a request that changes nothing waits for an answer before it is sent again. No
// server answers while there is no leader.
const resend = time.Second

// read returns the last message under a key, as the leader of the stream shows it.
func (e *engine) read(ctx context.Context, key string) (message, error) {
	subject := e.api + "STREAM.MSG.GET." + e.stream
	call := e.call("read", key, subject)
	request, err := json.Marshal(map[string]string{"last_by_subj": e.subject(key)})
	if err != nil {
		return message{}, err
	}
	res, err := again(ctx, func(ctx context.Context) (*nats.Msg, error) { return e.nc.RequestWithContext(ctx, subject, request) })
	if err != nil {
		return message{}, call.explain(err)
	}
	m, err := parse(key, res.Data)
	return m, call.explain(err)
}

// again sends a request that changes nothing, and sends it again while it is not answered.
func again[T any](ctx context.Context, send func(context.Context) (T, error)) (T, error) {
	for {
		attempt, cancel := context.WithTimeout(ctx, resend)
		answer, err := send(attempt)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return answer, err
		}
	}
}

// parse reads the answer to a read.
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

// confirm returns nil if the revision of the key was current at some time within the call, and
// [lease.ErrConflict] if that is not certain. It writes to another key of the bucket, on condition
// that the revision is the last one of this key. The write is acknowledged only by a leader that a
// majority follows, and such a leader has seen every revision before.
func (e *engine) confirm(ctx context.Context, key string, revision uint64) error {
	_, err := e.publish(ctx, "confirm", confirmKey, nil, jetstream.WithExpectLastSequenceForSubject(revision, e.subject(key)))
	return err
}

// put writes next if the last revision of the key is the one given, 0 if there is none.
func (e *engine) put(ctx context.Context, key string, revision uint64, next observe.Kept) (observe.Entry, error) {
	value, err := next.MarshalJSON()
	if err != nil {
		return observe.Entry{}, err
	}
	now, err := e.publish(ctx, "write", key, value, jetstream.WithExpectLastSequencePerSubject(revision))
	if err != nil {
		return observe.Entry{}, err
	}
	return newEntry(next, now, true), nil
}

// A publish is sent again while no server takes it, for two seconds: there is no leader, and nobody
// has received it.
const noLeaderWait, noLeaderTries = 100 * time.Millisecond, 20

// busyTries is how often a publish is sent again that was refused because another one with the same
// key was under way.
const busyTries = 20

// publish writes a value on a condition, and returns its revision. An error is [lease.ErrConflict] if
// the value was certainly not written.
func (e *engine) publish(ctx context.Context, what, key string, value []byte, condition ...jetstream.PublishOpt) (uint64, error) {
	subject := e.to + e.subject(key)
	call := e.call(what, key, subject)
	options := append(condition, jetstream.WithRetryWait(noLeaderWait), jetstream.WithRetryAttempts(noLeaderTries))
	for busy := 0; ; busy++ {
		m := &nats.Msg{Subject: subject, Data: value, Header: nats.Header{writerHeader: {writer}}}
		ack, err := e.js.PublishMsg(ctx, m, options...)
		if err == nil {
			return ack.Sequence, nil
		}
		var refused *jetstream.APIError
		if !errors.As(err, &refused) {
			return 0, call.explain(err)
		}
		switch refused.ErrorCode {
		case jetstream.JSErrCodeStreamWrongLastSequence:
			return 0, lease.ErrConflict
		case jetstream.JSErrCodeStreamWrongLastSequenceConstant:
			if busy == busyTries || pause(ctx, busy) != nil {
				return 0, lease.ErrConflict
			}
		default:
			return 0, call.explain(err)
		}
	}
}

// pause waits before the n-th repetition, a little longer each time, at random. It returns the
// error of a context that ends first.
func pause(ctx context.Context, n int) error {
	timer := time.NewTimer(rand.N(min(time.Duration(n+1)*time.Millisecond, 20*time.Millisecond)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// bounded gives a context without a deadline the default time-out of the client.
func (e *engine) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, cmp.Or(e.js.Options().DefaultTimeout, 5*time.Second))
}

// entry reads what a key holds.
func (e *engine) entry(m message) (observe.Entry, error) {
	var kept observe.Kept
	if err := kept.UnmarshalJSON(m.data); err != nil {
		return observe.Entry{}, fmt.Errorf("natslease: key %q of bucket %q: %w; put it right with nats kv put, or free the lease with nats kv del %[2]s %[1]s", m.key, e.bucket, err)
	}
	return newEntry(kept, m.revision, m.header.Get(writerHeader) == writer), nil
}

// newEntry returns an entry that was written at a revision, by a Store or by hand.
func newEntry(kept observe.Kept, revision uint64, byStore bool) observe.Entry {
	if kept == nobody || !byStore {
		kept.Record.Epoch = max(kept.Record.Epoch, floor(revision))
	}
	return observe.Entry{Kept: kept, Version: strconv.FormatUint(revision, 10), Revision: int64(revision)}
}

// floor is the epoch of a key that was created at a revision and has granted nothing, and the least
// epoch of a record that was written by hand. The revision of a grant is above its epoch: of the
// first because it is above the creation, and from then on because both rise, the epoch by one. So
// all epochs of the earlier lives of the key are below its floor.
func floor(revision uint64) uint64 { return revision - 1 }
