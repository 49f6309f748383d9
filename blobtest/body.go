package blobtest

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc64"
	"io"
	"net/http"
	"os"
)

// readBody reads the body of the request and verifies its checksums.
func (c *call) readBody() ([]byte, error) {
	n := c.r.ContentLength
	switch {
	case n < 0:
		return nil, errNoLength
	case n > c.o.MaxBody:
		return nil, errBodySize
	}
	if err := c.reserve(n); err != nil {
		return nil, err
	}
	// A context cannot interrupt a read of the body, so readBody sets a read deadline on the connection.
	deadline, _ := c.ctx.Deadline()
	_ = c.conn.SetReadDeadline(deadline) // in a test, the connection might not support deadlines
	var b bytes.Buffer
	if _, err := io.CopyN(&b, c.r.Body, n); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) || c.ctx.Err() != nil {
			return nil, errTimedOut
		}
		return nil, errBody
	}
	data := bytes.Clone(b.Bytes()) // a copy, because the buffer has allocated more memory than it needs
	if err := c.checkMD5(data); err != nil {
		return nil, err
	}
	return data, c.checkCRC64(data)
}

func (c *call) checkMD5(data []byte) error {
	s := c.header("Content-MD5")
	if s == "" {
		return nil
	}
	want, err := base64.StdEncoding.DecodeString(s)
	if err != nil || len(want) != md5.Size {
		return errInvalidMD5
	}
	if got := md5.Sum(data); !bytes.Equal(got[:], want) {
		return errMD5.with("UserSpecifiedMd5", s).with("ServerCalculatedMd5", base64.StdEncoding.EncodeToString(got[:]))
	}
	return nil
}

// azurePolynomial is the CRC-64 polynomial of the header x-ms-content-crc64.
const azurePolynomial = 0x9A6C9329AC4BC9B5

func (c *call) checkCRC64(data []byte) error {
	const name = "x-ms-content-crc64"
	s := c.header(name)
	if s == "" {
		return nil
	}
	want, err := base64.StdEncoding.DecodeString(s)
	if err != nil || len(want) != 8 {
		return badHeader(c.r, name)
	}
	if crc64.Checksum(data, crc64.MakeTable(azurePolynomial)) != binary.LittleEndian.Uint64(want) {
		return errCRC64
	}
	return nil
}

// rejectBody returns a failure if the body of the request is not empty.
func (c *call) rejectBody() error {
	if c.r.ContentLength != 0 && c.r.Body != nil && c.r.Body != http.NoBody {
		var one [1]byte
		if n, err := c.r.Body.Read(one[:]); n > 0 || err != nil && !errors.Is(err, io.EOF) {
			return errInput
		}
	}
	return nil
}
