package sdktest

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

// An op is one step of a sequence: a wait, or a request that both sides get.
type op struct {
	name   string // the verb with its arguments, for messages
	verb   string // the name without the arguments
	id     string // the lease ID that is sent or proposed: A, B, ... or empty
	method string
	target string // follows the address of the container; begins with / for a blob
	header []string
	body   string
	wait   time.Duration
}

// idOf returns a lease ID by its letter. The letter n stands for the ID of A in another format of a GUID.
func idOf(letter string) string {
	if letter == "n" {
		return strings.ReplaceAll(idA, "-", "")
	}
	return ids[letter]
}

func leaseOp(base, action, id string, h ...string) op {
	o := op{verb: action, id: id, method: "PUT", target: base + "comp=lease", header: append([]string{"x-ms-lease-action", action}, h...)}
	o.name = strings.TrimSpace(action + " " + id)
	for i := 1; i < len(h); i += 2 {
		if h[i] != idOf(id) {
			o.name += " " + short(h[i])
		}
	}
	return o
}

func short(v string) string {
	for letter, id := range ids {
		if v == id {
			return letter
		}
	}
	return v
}

func acquire(base, id, seconds string, h ...string) op {
	h = append([]string{"x-ms-lease-duration", seconds}, h...)
	if id != "" {
		h = append(h, "x-ms-proposed-lease-id", idOf(id))
	}
	return leaseOp(base, "acquire", id, h...)
}

func renew(base, id string) op { return leaseOp(base, "renew", id, "x-ms-lease-id", idOf(id)) }

func change(base, id, proposed string) op {
	return leaseOp(base, "change", id, "x-ms-lease-id", idOf(id), "x-ms-proposed-lease-id", idOf(proposed))
}

func release(base, id string) op { return leaseOp(base, "release", id, "x-ms-lease-id", idOf(id)) }

func breaks(base, period string) op {
	if period == "" {
		return leaseOp(base, "break", "")
	}
	return leaseOp(base, "break", "", "x-ms-lease-break-period", period)
}

func wait(seconds int) op {
	return op{name: fmt.Sprint("wait ", seconds), verb: "wait", wait: time.Duration(seconds) * time.Second}
}

// use returns an op that sends a lease ID, but is not a lease operation.
func use(verb, id, method, target, body string, h ...string) op {
	if id != "" {
		h = append(h, "x-ms-lease-id", idOf(id))
	}
	return op{name: strings.TrimSpace(verb + " " + id), verb: verb, id: id, method: method, target: target, header: h, body: body}
}

const (
	onBlob      = "/blob?"
	onContainer = "?restype=container&"
)

func put(id string) op {
	return use("put", id, "PUT", "/blob", "again", "x-ms-blob-type", "BlockBlob")
}

func putNew(id string) op {
	return use("put-new", id, "PUT", "/blob", "again", "x-ms-blob-type", "BlockBlob", "If-None-Match", "*")
}

func putStale(id string) op {
	return use("put-stale", id, "PUT", "/blob", "again", "x-ms-blob-type", "BlockBlob", "If-Match", `"0x8D00000"`)
}

func block(id string) op {
	return use("block", id, "PUT", "/blob?comp=block&blockid=MDAx", "block")
}

func get(id string) op { return use("get", id, "GET", "/blob", "") }

// blobOps returns a random step on a blob.
func blobOps(r *rand.Rand) op {
	id := pick(r, "", "A", "A", "B")
	held := pick(r, "A", "A", "B")
	switch r.IntN(26) {
	case 0, 1, 2, 3:
		return acquire(onBlob, pick(r, "", "A", "A", "A", "B", "n"), pick(r, "15", "15", "15", "60", "-1", "14", "61"))
	case 4, 5:
		return renew(onBlob, held)
	case 6, 7:
		return change(onBlob, held, pick(r, "A", "B", "C"))
	case 8:
		return release(onBlob, held)
	case 9, 10:
		return breaks(onBlob, pick(r, "", "0", "5", "10", "60", "61"))
	case 11, 12:
		return put(id)
	case 13:
		return putNew(id)
	case 14:
		return putStale(id)
	case 15:
		return use("metadata", id, "PUT", "/blob?comp=metadata", "", "x-ms-meta-note", pick(r, "one", "two"))
	case 16:
		return use("properties", id, "PUT", "/blob?comp=properties", "", "x-ms-blob-content-type", "text/plain")
	case 17:
		return block(id)
	case 18:
		return use("delete", id, "DELETE", "/blob", "", "x-ms-delete-snapshots", "include")
	case 19:
		return use("snapshot", id, "PUT", "/blob?comp=snapshot", "")
	case 20, 21:
		return get(id)
	case 22:
		return use("get-metadata", id, "GET", "/blob?comp=metadata", "")
	case 23:
		o := acquire(onBlob, held, "15", "If-Match", `"0x8D00000"`)
		o.verb, o.name = "acquire-stale", "acquire-stale "+held
		return o
	case 24:
		return use("list", "", "GET", "?restype=container&comp=list", "")
	default:
		return wait(16)
	}
}

// containerOps returns a random step on a container.
func containerOps(r *rand.Rand) op {
	id := pick(r, "", "A", "A", "B")
	held := pick(r, "A", "A", "B")
	switch r.IntN(18) {
	case 0, 1, 2, 3:
		return acquire(onContainer, pick(r, "", "A", "A", "A", "B"), pick(r, "15", "15", "15", "60", "-1", "14"))
	case 4, 5:
		return renew(onContainer, held)
	case 6, 7:
		return change(onContainer, held, pick(r, "A", "B", "C"))
	case 8, 9:
		return release(onContainer, held)
	case 10, 11:
		return breaks(onContainer, pick(r, "", "0", "5", "10", "60"))
	case 12:
		return use("delete", id, "DELETE", "?restype=container", "")
	case 13:
		return use("create", "", "PUT", "?restype=container", "")
	case 14:
		return use("metadata", id, "PUT", "?restype=container&comp=metadata", "", "x-ms-meta-note", pick(r, "one", "two"))
	case 15:
		return use("properties", id, "GET", "?restype=container", "")
	case 16:
		return put("")
	default:
		return wait(16)
	}
}

func pick(r *rand.Rand, from ...string) string { return from[r.IntN(len(from))] }

// A side is one of the two servers, with the container of a sequence.
type side struct {
	base string // the address of the container
	sas  string
	wait func(context.Context, time.Duration) error
}

// An answer is the part of a response that the tests compare.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) code() string { return a.header.Get("x-ms-error-code") }

func (s *side) do(ctx context.Context, o op) (answer, error) {
	sep := "?"
	if strings.Contains(o.target, "?") {
		sep = "&"
	}
	r, err := http.NewRequestWithContext(ctx, o.method, s.base+o.target+sep+s.sas, strings.NewReader(o.body))
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("x-ms-version", "2025-11-05")
	for i := 0; i < len(o.header); i += 2 {
		r.Header.Set(o.header[i], o.header[i+1])
	}
	res, err := client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, string(body)}, err
}

// client keeps enough connections for all sequences that run at the same time.
var client = &http.Client{
	// Azurite closes a connection that was idle for 5 s, and a request that is then under way is lost.
	Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 2 * time.Second},
	Timeout:   2 * time.Minute,
}
