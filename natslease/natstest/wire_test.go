package natstest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/histories"
	"github.com/fencedlease/lease/observe"
)

// A wire reads the data between clients and NATS, and adds the exchanges about one key to a history. It
// reads the protocol itself, so it depends only on the text form of a record. A read alone does not
// count, because its answer can be stale. Only its confirmation shows that the version was current.
type wire struct {
	mu      sync.Mutex
	subject string             // of the key
	history *histories.History // nil: the wire records no exchanges
	sent    map[string]sent    // requests without an answer, by their reply subject
	read    map[uint64]lease.Record
}

// A sent is a request that has no answer yet.
type sent struct {
	histories.Exchange
	confirms bool // the request confirms the previous read
}

// begin makes the wire record the exchanges about a key.
func (w *wire) begin(key string, h *histories.History) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.subject, w.history, w.sent, w.read = "$KV.leases."+key, h, map[string]sent{}, map[uint64]lease.Record{}
}

// end stops the recording. The outcome of a request that has no answer is unknown.
func (w *wire) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.sent {
		if s.Swap {
			s.Return, s.Err = time.Now(), errors.New("no answer")
			w.history.Add(s.Exchange)
		}
	}
	w.history = nil
}

// connection returns two writers, to which the proxy writes the two directions of a new connection.
func (w *wire) connection() (requests, answers io.Writer) {
	if w == nil {
		return io.Discard, io.Discard
	}
	return &protocol{handle: w.request}, &protocol{handle: w.answer}
}

// request handles a message from a client.
func (w *wire) request(subject, reply string, header nats.Header, data []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.history == nil || reply == "" {
		return
	}
	s := sent{Exchange: histories.Exchange{Call: time.Now()}}
	s.Old.Version = header.Get(jetstream.ExpectedLastSubjSeqHeader)
	switch {
	case subject == w.subject:
		s.Swap, s.Next = true, record(data)
	case header.Get(jetstream.ExpectedLastSubjSeqSubjHeader) == w.subject:
		s.confirms = true
	case strings.HasPrefix(subject, "$JS.API.STREAM.MSG.GET.") && bytes.Contains(data, []byte(strconv.Quote(w.subject))):
	default:
		return
	}
	w.sent[reply] = s
}

// answer handles a message from a server.
func (w *wire) answer(subject, _ string, header nats.Header, data []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, ok := w.sent[subject]
	if !ok || w.history == nil {
		return
	}
	delete(w.sent, subject)
	var res struct {
		Error    *jetstream.APIError `json:"error"`
		Sequence uint64              `json:"seq"` // of an acknowledgement
		Message  *struct {
			Sequence uint64 `json:"seq"`
			Header   []byte `json:"hdrs"`
			Data     []byte `json:"data"`
		} `json:"message"` // of a read
	}
	if header.Get("Status") != "503" { // no server took the request
		if err := json.Unmarshal(data, &res); err != nil {
			panic(fmt.Sprintf("%s is on the wire: %v", data, err))
		}
	}
	s.Return = time.Now()
	switch {
	case s.Swap:
		switch {
		case res.Error != nil && (res.Error.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || res.Error.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant),
			header.Get("Status") == "503":
			s.Err = lease.ErrConflict
		case res.Error != nil:
			s.Err = res.Error
		default:
			s.Snap = version(s.Next, res.Sequence)
		}
		w.history.Add(s.Exchange)
	case s.confirms && res.Error == nil && header.Get("Status") == "":
		revision, err := strconv.ParseUint(s.Old.Version, 10, 64)
		if err != nil {
			panic(err)
		}
		s.Snap = version(w.read[revision], revision)
		w.history.Add(s.Exchange)
	case res.Message != nil && len(res.Message.Data) > 0:
		w.read[res.Message.Sequence] = record(res.Message.Data)
	}
}

// version returns the snapshot of a record at a revision, which supplies the epoch of a new record.
func version(r lease.Record, revision uint64) lease.Snapshot {
	if r == (lease.Record{}) {
		r.Epoch = revision - 1
	}
	return lease.Snapshot{Record: r, Version: strconv.FormatUint(revision, 10)}
}

func record(value []byte) lease.Record {
	var k observe.Kept
	if err := k.UnmarshalJSON(value); err != nil {
		panic(fmt.Sprintf("%s is on the wire: %v", value, err))
	}
	return k.Record
}

// A protocol reads one direction of a connection: lines, some of which announce a message.
//
//	PUB subject [reply] size          MSG subject sid [reply] size
//	HPUB subject [reply] header size  HMSG subject sid [reply] header size
type protocol struct {
	rest   []byte
	handle func(subject, reply string, header nats.Header, data []byte)
}

func (p *protocol) Write(b []byte) (int, error) {
	p.rest = append(p.rest, b...)
	for {
		end := bytes.Index(p.rest, []byte("\r\n"))
		if end < 0 {
			return len(b), nil
		}
		words := strings.Fields(string(p.rest[:end]))
		n, ok := p.message(words, p.rest[end+2:])
		if !ok {
			return len(b), nil // the rest of the message is still to come
		}
		p.rest = p.rest[end+2+n:]
	}
}

// message handles the message that a line announces, and returns its length, or 0 if there is no message.
func (p *protocol) message(words []string, rest []byte) (n int, ok bool) {
	if len(words) == 0 {
		return 0, true
	}
	verb := strings.ToUpper(words[0])
	if verb != "PUB" && verb != "HPUB" && verb != "MSG" && verb != "HMSG" {
		return 0, true
	}
	args, numbers := words[1:], 1
	if verb[0] == 'H' {
		numbers = 2
	}
	size, _ := strconv.Atoi(args[len(args)-1])
	if len(rest) < size+2 {
		return 0, false
	}
	headerSize := 0
	if numbers == 2 {
		headerSize, _ = strconv.Atoi(args[len(args)-2])
	}
	args = args[:len(args)-numbers]
	subject, reply := args[0], ""
	if strings.HasSuffix(verb, "MSG") {
		args = args[1:] // the sid
	}
	if len(args) > 1 {
		reply = args[1]
	}
	var header nats.Header
	if headerSize > 0 {
		header, _ = nats.DecodeHeadersMsg(rest[:headerSize])
	}
	p.handle(subject, reply, header, rest[headerSize:size])
	return size + 2, true
}
