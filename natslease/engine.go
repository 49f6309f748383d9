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

// An engine implements observe.Engine over a bucket of NATS. The version of a lease is the revision
// of its key. The revision of a key is the sequence number of its last message in the bucket's
// stream. Sequence numbers keep rising after deletes and purges, so no two messages have the same
// number.
type engine struct {
	js     jetstream.JetStream
	nc     *nats.Conn
	bucket string
	stream string // of the bucket
	api    string // prefix of the subjects of the API
	to     string // prefix of the subjects of published messages: api, or empty if api is the default prefix
}

func newEngine(js jetstream.JetStream, bucket string) *engine {
	e := &engine{js: js, nc: js.Conn(), bucket: bucket, stream: "KV_" + bucket, api: jetstream.DefaultAPIPrefix}
	switch o := js.Options(); { // the same rules as in package jetstream
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

// nobody is the value of a new key. It has no epoch, so lowestEpoch supplies the epoch. A new key
// never contains a lease. Otherwise a writer could find no key, pause while other writers create,
// use and remove the key, and then create the key with an old token.
var nobody = observe.Kept{}

// Load reads the key from the leader of the stream. If the key does not exist, Load creates it.
//
// A server that has lost its leadership still answers until it notices the loss. Load therefore
// confirms that a value is current before it returns the value. The creation of a key needs no
// confirmation.
func (e *engine) Load(ctx context.Context, name string) (found observe.Entry, err error) {
	err = e.readCurrent(ctx, encode(name), func(m message) (err error) {
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

// Open is the same as Load. Creating a key without a read first would save nothing.
func (e *engine) Open(ctx context.Context, name string) (observe.Entry, error) {
	return e.Load(ctx, name)
}

// Swap replaces the version old by next. With lease.ErrConflict it returns a zero Entry.
func (e *engine) Swap(ctx context.Context, name, old string, next observe.Kept) (observe.Entry, error) {
	revision, err := strconv.ParseUint(old, 10, 63)
	if err != nil || revision == 0 {
		return observe.Entry{}, fmt.Errorf("natslease: version %q is not of this store", old)
	}
	return e.put(ctx, encode(name), revision, next)
}

// readCurrent reads a key and calls f with the message. The function f returns [lease.ErrConflict]
// if the message was not current. Then readCurrent reads the key again.
func (e *engine) readCurrent(ctx context.Context, key string, f func(message) error) error {
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

// A message is the last message under a key.
type message struct {
	key      string
	revision uint64 // 0 if there is no message since the last purge
	header   nats.Header
	data     []byte
}

// Headers of the messages in a bucket.
const (
	operationHeader = "KV-Operation"       // set by a client: a delete or a purge
	reasonHeader    = "Nats-Marker-Reason" // set by the server: a delete or a purge
	writerHeader    = "Lease-Writer"       // set by put
	writer          = "natslease"          // the value of writerHeader
	lastConsumer    = "Nats-Last-Consumer" // in a heartbeat: the number of messages that the consumer has sent
	statusHeader    = "Status"             // in a message that does not come from the stream
	heartbeatStatus = "100"                // the status of a heartbeat
)

// absent reports whether the key does not exist. A deleted key does not exist.
func (m message) absent() bool {
	return m.revision == 0 || m.header.Get(operationHeader) != "" || m.header.Get(reasonHeader) != ""
}

// attemptTimeout is how long a client waits for the answer to a read-only request before it sends
// the request again. No server answers a request that arrives while there is no leader.
const attemptTimeout = time.Second

// read returns the last message under a key. The answer comes from the leader of the stream. The
// answer may be stale, because a server that is no longer the leader may still answer.
func (e *engine) read(ctx context.Context, key string) (message, error) {
	subject := e.api + "STREAM.MSG.GET." + e.stream
	call := e.call("read", key, subject)
	request, err := json.Marshal(map[string]string{"last_by_subj": e.subject(key)})
	if err != nil {
		return message{}, err
	}
	res, err := sendRepeatedly(ctx, func(ctx context.Context) (*nats.Msg, error) { return e.nc.RequestWithContext(ctx, subject, request) })
	if err != nil {
		return message{}, call.explain(err)
	}
	m, err := parse(key, res.Data)
	return m, call.explain(err)
}

// sendRepeatedly calls send until a call returns without a timeout or ctx is done. It returns the
// result of the last call. The request must be read-only, because it may be executed more than
// once.
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

// parse decodes the answer to a read request.
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

// confirm returns nil if the given revision of the key was current at some time during the call. If
// that is not certain, it returns [lease.ErrConflict]. To find out, confirm writes to confirmKey,
// on the condition that the given revision is still the last revision of the key. Only a leader
// that a majority of servers follows can acknowledge the write, and such a leader has received
// every earlier revision.
func (e *engine) confirm(ctx context.Context, key string, revision uint64) error {
	_, err := e.publish(ctx, "confirm", confirmKey, nil, jetstream.WithExpectLastSequenceForSubject(revision, e.subject(key)))
	return err
}

// put replaces the value of a key if the last revision of the key is the given revision. The
// revision 0 means that the key must not exist.
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

// While the stream has no leader, no server receives a published message. The client then publishes
// the message again, up to noLeaderTries times, with a pause of noLeaderWait.
const noLeaderWait, noLeaderTries = 100 * time.Millisecond, 20

// busyTries is how often a message is published again if NATS refuses it because another write of
// the same key is in progress.
const busyTries = 20

// publish writes a value if the condition holds, and returns the revision of the value. If publish
// returns [lease.ErrConflict], the value was certainly not written.
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

// pause waits for a random time before the n-th retry. The upper bound grows with n, up to 20 ms.
// If ctx is done, pause returns ctx.Err().
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

// bounded adds the default timeout of the client to a context that has no deadline.
func (e *engine) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, cmp.Or(e.js.Options().DefaultTimeout, 5*time.Second))
}

// entry decodes the value of a key.
func (e *engine) entry(m message) (observe.Entry, error) {
	var kept observe.Kept
	if err := kept.UnmarshalJSON(m.data); err != nil {
		return observe.Entry{}, fmt.Errorf("natslease: key %q of bucket %q: %w; put it right with nats kv put, or free the lease with nats kv del %[2]s %[1]s", m.key, e.bucket, err)
	}
	return newEntry(kept, m.revision, m.header.Get(writerHeader) == writer), nil
}

// newEntry returns the entry for a value and its revision. If the value was written by hand,
// byStore is false.
func newEntry(kept observe.Kept, revision uint64, byStore bool) observe.Entry {
	if kept == nobody || !byStore {
		kept.Record.Epoch = max(kept.Record.Epoch, lowestEpoch(revision))
	}
	return observe.Entry{Kept: kept, Version: strconv.FormatUint(revision, 10), Revision: int64(revision)}
}

// lowestEpoch returns the lowest epoch that a key can have at the given revision. A new key has
// this epoch. A value that was written by hand gets this epoch if its own epoch is lower.
//
// Every grant has a revision that is higher than its epoch. The first grant has a higher revision
// than the creation of its key, and each later grant raises the epoch by one and the revision by at
// least one. If a key is deleted and created again, the lowest epoch of the new key is therefore
// higher than all epochs of the old key.
func lowestEpoch(revision uint64) uint64 { return revision - 1 }
