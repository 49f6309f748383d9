package blobtest

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	maxUncommitted = 100_000
	maxCommitted   = 50_000
)

// putBlock serves Put Block, which stores a block for a later Put Block List. A blob that has only
// uncommitted blocks can already be leased.
func putBlock(c *call) (*reply, error) {
	if v := c.header("x-ms-copy-source"); v != "" { // Put Block From URL
		return nil, errHeader.with("HeaderName", "x-ms-copy-source").with("HeaderValue", v)
	}
	id := c.query.Get("blockid")
	if id == "" {
		return nil, errMissingQuery.with("QueryParameterName", "blockid")
	}
	if n := decodedLength(id); n == 0 || n > 64 {
		return nil, badQuery(errInvalidQuery, "blockid", id, "Not a valid base64 string of at most 64 bytes.")
	}
	data, err := c.readBody()
	if err != nil {
		return nil, err
	}
	if len(data) == 0 {
		return nil, badHeader(c.r, "Content-Length")
	}
	return c.writeBlob(write{creates: true, prepare: func(f findResult) (plan, error) {
		var e entry
		if f.entry != nil {
			e = *f.entry
		}
		if len(e.blocks) >= maxUncommitted {
			return plan{}, errBlockCount
		}
		// "All block IDs must be the same length within a blob."
		if len(e.blocks) > 0 && decodedLength(e.blocks[0].id) != decodedLength(id) {
			return plan{}, errBlockID
		}
		added := block{id, data}
		grows := blocksSize([]block{added})
		if f.entry == nil {
			grows += placeSize
		}
		return plan{grows, func(time.Time) (*entry, *reply) {
			e.blocks = append(e.blocks, added) // does not change the old entry for those who read it
			rep := newReply(http.StatusCreated)
			rep.header.Set("x-ms-request-server-encrypted", "false")
			if c.header("Content-MD5") != "" {
				rep.header.Set("Content-MD5", c.header("Content-MD5"))
			}
			return &e, rep
		}}, nil
	}})
}

// decodedLength returns the number of bytes that a block ID encodes, or 0 if the ID is not valid base64.
func decodedLength(id string) int {
	raw, err := base64.StdEncoding.DecodeString(id)
	if err != nil {
		return 0
	}
	return len(raw)
}

// putBlockList serves Put Block List, which makes a blob from blocks that were stored before.
func putBlockList(c *call) (*reply, error) {
	v, err := c.parseContent()
	if err != nil {
		return nil, err
	}
	v.props.contentType = c.header("x-ms-blob-content-type") // the header Content-Type describes the XML of the request
	if v.props.contentType == "" {
		v.props.contentType = "application/octet-stream"
	}
	body, err := c.readBody()
	if err != nil {
		return nil, err
	}
	wanted, err := parseBlockList(body)
	if err != nil {
		return nil, err
	}
	return c.putContent(v, write{}, http.StatusCreated, func(f findResult, _ *reply) error {
		uncommitted, committed := map[string]block{}, map[string]block{}
		if f.entry != nil {
			for _, b := range f.entry.blocks {
				uncommitted[b.id] = b
			}
			if f.entry.current != nil {
				for _, b := range f.entry.current.blocks {
					committed[b.id] = b
				}
			}
		}
		v.blocks = make([]block, 0, len(wanted))
		for _, w := range wanted {
			b, ok := uncommitted[w.id]
			if w.from == "Committed" || w.from == "Latest" && !ok {
				b, ok = committed[w.id]
			}
			if !ok {
				return errBlockList
			}
			v.blocks, v.data = append(v.blocks, b), append(v.data, b.data)
		}
		if v.data.size() > c.o.MaxBlob {
			return errBodySize
		}
		return nil
	})
}

// A wanted block is an item of a block list: a block ID, and Committed, Uncommitted or Latest.
type wanted struct{ from, id string }

// parseBlockList parses a block list token by token, because the list can have millions of elements. It stops
// at the first error, or when the list is too long.
func parseBlockList(body []byte) (list []wanted, err error) {
	d := xml.NewDecoder(bytes.NewReader(bytes.TrimPrefix(body, []byte("\ufeff"))))
	var id []byte
	for depth, ended := 0, false; ; {
		token, err := d.Token()
		if err == io.EOF && ended {
			return list, nil
		}
		if err != nil {
			return nil, errXML
		}
		switch t := token.(type) {
		case xml.StartElement:
			name := t.Name.Local
			block := name == "Committed" || name == "Uncommitted" || name == "Latest"
			switch {
			case depth == 0 && name == "BlockList" && !ended:
			case depth == 1 && block && len(list) == maxCommitted:
				return nil, errBlockListTooLong
			case depth == 1 && block:
				list, id = append(list, wanted{from: name}), id[:0]
			default:
				return nil, errXML
			}
			depth++
		case xml.EndElement:
			if depth--; depth == 1 {
				list[len(list)-1].id = string(bytes.TrimSpace(id))
			}
			ended = depth == 0
		case xml.CharData:
			if depth == 2 {
				id = append(id, t...)
			} else if len(bytes.TrimSpace(t)) > 0 {
				return nil, errXML
			}
		}
	}
}

// getBlockList serves Get Block List. It also serves a blob that has only uncommitted blocks.
func getBlockList(c *call) (*reply, error) {
	which := strings.ToLower(c.query.Get("blocklisttype"))
	if which == "" {
		which = "committed"
	}
	if which != "committed" && which != "uncommitted" && which != "all" {
		return nil, badQuery(errInvalidQuery, "blocklisttype", which, "It must be committed, uncommitted or all.")
	}
	v, err := c.readBlob(true)
	if err != nil {
		return nil, err
	}
	rep := newReply(http.StatusOK)
	rep.header.Set("Content-Type", "application/xml")
	rep.header.Set("x-ms-blob-content-length", strconv.FormatInt(v.data.size(), 10))
	c.describe(rep, v.etag, v.modified)
	b := startXML()
	b.WriteString("<BlockList>")
	if which != "uncommitted" {
		writeBlocks(b, "CommittedBlocks", v.blocks)
	}
	if which != "committed" && c.snapshot.IsZero() {
		writeBlocks(b, "UncommittedBlocks", v.entry.latestBlocks())
	}
	b.WriteString("</BlockList>")
	rep.body = segments{b.Bytes()}
	return rep, nil
}

// latestBlocks returns the uncommitted blocks. Of several blocks with the same ID, only the last counts.
func (e *entry) latestBlocks() (list []block) {
	at := map[string]int{}
	for _, b := range e.blocks {
		if i, ok := at[b.id]; ok {
			list[i] = b
			continue
		}
		at[b.id] = len(list)
		list = append(list, b)
	}
	return list
}

func writeBlocks(b *bytes.Buffer, name string, blocks []block) {
	b.WriteString("<" + name + ">")
	for _, k := range blocks {
		b.WriteString("<Block>")
		element(b, "Name", k.id)
		element(b, "Size", strconv.Itoa(len(k.data)))
		b.WriteString("</Block>")
	}
	b.WriteString("</" + name + ">")
}

// startXML returns a buffer with the byte order mark and the XML declaration of documents of the service.
func startXML() *bytes.Buffer {
	return bytes.NewBufferString("\ufeff" + `<?xml version="1.0" encoding="utf-8"?>`)
}
