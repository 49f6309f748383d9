package leasetest

import (
	"context"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/timeline"
	"github.com/fencedlease/lease/internal/wrap"
	"github.com/fencedlease/lease/leasefault"
)

// A history is a log of the calls of a rule, with times that count from its first line. It is printed if
// the rule fails. A history is safe for concurrent use. The zero history is empty and ready to use.
type history struct {
	delays  delays
	drawing timeline.Drawing // the timeline of the requests in the history

	mu    sync.Mutex
	began time.Time
	lines []string
}

// printf adds a line with the time since the first line.
func (h *history) printf(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if h.began.IsZero() {
		h.began = now
	}
	text := fmt.Sprintf(format, args...)
	h.lines = append(h.lines, fmt.Sprintf("%12v  %s", now.Sub(h.began), text))
	h.noted(now, text)
}

// The method stepped records a call of a function like lease.Step. The new line of the history begins with
// the time that was passed to this function.
func (h *history) stepped(now time.Time, r lease.Record, req lease.Request, next lease.Record, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, fmt.Sprintf("%s  %s of %s: %s",
		now.Format("2006-01-02 15:04:05.999999999Z07:00"), requestText(req), outcomeText(r, nil), outcomeText(next, err)))
}

// String returns the last lines of the history.
func (h *history) String() string {
	text, _ := h.linesAfter(0)
	return text
}

// linesAfter returns the lines after the first n lines, and the number of all lines. If the text would be too
// long, only the end of the text is returned.
func (h *history) linesAfter(n int) (text string, all int) {
	const most = 60
	h.mu.Lock()
	defer h.mu.Unlock()
	all = len(h.lines)
	if n == all {
		return fmt.Sprintf("%12s  nothing was asked for", ""), all
	}
	if first := max(n, all-most); first > 0 {
		text, n = fmt.Sprintf("%12s  %d lines earlier\n", "...", first), first
	}
	return text + strings.Join(h.lines[n:], "\n"), all
}

// The method authority returns a wrapper of the authority a. The wrapper records all calls in the history.
func (h *history) authority(a lease.Authority) lease.Authority {
	return wrap.Authority(historicAuthority{a, h}, a)
}

type historicAuthority struct {
	lease.Authority
	h *history
}

func (a historicAuthority) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	sent := time.Now()
	a.h.printf("-> %s", requestText(req))
	res, err := a.Authority.Do(ctx, name, req)
	a.h.delays.answered(req.Action.String(), sent)
	a.h.answered("", name, req, sent, res, err)
	a.h.printf("<- %s after %v: %s", requestText(req), time.Since(sent), answerText(res, err))
	return res, err
}

// The method store returns a wrapper of the store s. The wrapper records all calls in the history.
func (h *history) store(s lease.Store) lease.Store {
	return wrap.Store(historicStore{s, h}, s)
}

type historicStore struct {
	lease.Store
	h *history
}

func (s historicStore) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	sent := time.Now()
	snap, err := s.Store.Load(ctx, name)
	s.h.delays.answered("load", sent)
	s.h.printf("load %s: version %s at %s: %s", nameText(name), snap.Version, timeText(snap.Now), outcomeText(snap.Record, err))
	return snap, err
}

func (s historicStore) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	sent := time.Now()
	snap, err := s.Store.Swap(ctx, name, old, next)
	s.h.delays.answered("swap", sent)
	s.h.printf("swap %s: version %s for %s: version %s at %s: %s",
		nameText(name), old.Version, outcomeText(next, nil), snap.Version, timeText(snap.Now), outcomeText(snap.Record, err))
	return snap, err
}

func requestText(req lease.Request) string {
	s := req.Action.String()
	if !req.ID.IsZero() {
		s += " id=" + idText(req.ID)
	}
	if !req.Proposed.IsZero() {
		s += " proposed=" + idText(req.Proposed)
	}
	if req.Duration != 0 {
		s += fmt.Sprintf(" duration=%v", req.Duration)
	}
	if p, ok := req.Period.Get(); ok {
		s += fmt.Sprintf(" period=%v", p)
	}
	if req.Owner != "" {
		s += fmt.Sprintf(" owner=%.20q", req.Owner)
	}
	return s
}

func outcomeText(r lease.Record, err error) string {
	s := fmt.Sprintf("%v epoch=%d", r.State, r.Epoch)
	if !r.ID.IsZero() {
		s += " id=" + idText(r.ID)
	}
	if !r.Until.IsZero() {
		s += " until=" + timeText(r.Until)
	}
	if err != nil {
		s = fmt.Sprintf("%v (%s)", err, s)
	}
	return s
}

// recordText returns all fields of a record, so that a message can compare two records.
func recordText(r lease.Record) string {
	text, err := r.MarshalText()
	if err != nil {
		return fmt.Sprintf("%+v (%v)", r, err)
	}
	return string(text)
}

// answerText describes the answer to a request. MinRemaining is left out if it equals MaxRemaining.
func answerText(res lease.Result, err error) string {
	s := outcomeText(res.Record, err)
	if left := res.MaxRemaining(); res.MinRemaining != left {
		s += fmt.Sprintf(" min=%v max=%v", res.MinRemaining, left)
	}
	return s
}

// idText returns the first 8 characters of an ID, which are enough to distinguish the IDs of one rule.
func idText(id lease.ID) string { return id.String()[:8] }

// nameText quotes the name of a lease. A long name is shortened to its beginning, its end and a checksum,
// which distinguishes names that differ only in the middle.
func nameText(name string) string {
	const most = 80
	if len(name) <= most {
		return strconv.Quote(name)
	}
	return fmt.Sprintf("%q...%q (%d bytes, CRC %08x)", name[:most/2], name[len(name)-most/2:], len(name), crc32.ChecksumIEEE([]byte(name)))
}

func timeText(t time.Time) string { return t.UTC().Format("15:04:05.999999999") }

// A requestLog is an authority that records the requests of a lease. Without CanUseAuthority it stays empty.
type requestLog struct {
	lease.Authority
	h    *history
	who  string
	down atomic.Bool // makes every request fail

	mu      sync.Mutex
	sent    []sent
	flying  map[*sent]context.Context
	most    map[lease.Action]int // for each action, the most requests that were in flight at the same time and not canceled
	crossed bool                 // a release was sent while an acquire was in flight
}

func newRequestLog(h *history, who string) *requestLog {
	return &requestLog{h: h, who: who, flying: map[*sent]context.Context{}, most: map[lease.Action]int{}}
}

type sent struct {
	lease.Request
	at  time.Time
	ctx context.Context
}

func (w *requestLog) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	w.h.printf("%s -> %s", w.who, requestText(req))
	s := sent{req, time.Now(), ctx}
	w.mu.Lock()
	w.sent = append(w.sent, s)
	w.flying[&s] = ctx
	w.most[req.Action] = max(w.most[req.Action], w.inFlight(req.Action))
	w.crossed = w.crossed || req.Action == lease.ActionRelease && w.inFlight(lease.ActionAcquire) > 0
	w.mu.Unlock()
	res, err := w.Authority.Do(ctx, name, req)
	w.mu.Lock()
	delete(w.flying, &s)
	w.mu.Unlock()
	w.h.answered(w.who, name, req, s.at, res, err)
	w.h.printf("%s <- %s: %s", w.who, requestText(req), answerText(res, err))
	return res, err
}

// The method inFlight counts the requests with the given action that are neither answered nor canceled. The
// caller holds mu.
func (w *requestLog) inFlight(a lease.Action) (n int) {
	for s, ctx := range w.flying {
		if s.Action == a && ctx.Err() == nil {
			n++
		}
	}
	return n
}

// sentOf returns all requests with the given action that the log contains. If the action is leasefault.Any,
// sentOf returns all requests in the log.
func (w *requestLog) sentOf(a lease.Action) []sent {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []sent
	for _, s := range w.sent {
		if a == leasefault.Any || s.Action == a {
			found = append(found, s)
		}
	}
	return found
}

// maxInFlight returns the largest number of requests with the given action that were in flight at once.
func (w *requestLog) maxInFlight(a lease.Action) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.most[a]
}

// proposed returns the ID in the latest acquire.
func (w *requestLog) proposed() lease.ID {
	acquires := w.sentOf(lease.ActionAcquire)
	if len(acquires) == 0 {
		return lease.ID{}
	}
	return acquires[len(acquires)-1].Proposed
}
