package s3lease

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// An object is the content of the S3 object of a lease.
type object struct {
	Name     string           `json:"name"`
	Write    string           `json:"write"`              // random, because equal contents would have equal ETags
	Revision int64            `json:"revision,omitempty"` // higher by one after each write
	Before   string           `json:"before,omitempty"`   // the marks of the last writes before this one, the newest first
	Lease    *engine.Retained `json:"lease,omitempty"`    // nil before the lease was first granted

	etag string // empty if the object does not exist
}

const (
	markLength = 8 // characters in a mark
	mostMarks  = 8 // marks in an object
)

func (o object) exists() bool { return o.etag != "" }

// The method mark returns the first characters of o.Write. Later objects contain these characters to identify
// this write.
func (o object) mark() string { return o.Write[:markLength] }

// The next object must contain the marks of this object and of the objects before it. The method marks
// returns these marks.
func (o object) marks() string {
	all := o.mark() + o.Before
	return all[:min(len(all), mostMarks*markLength)]
}

// The method replaced reports whether the object with the given mark was written before o.
func (o object) replaced(mark string) bool {
	for i := 0; i < len(o.Before); i += markLength {
		if o.Before[i:i+markLength] == mark {
			return true
		}
	}
	return false
}

// The method entry returns the entry of an object. Before the first grant, the revision of the object is the
// time at which the service created the object, in milliseconds. The epoch of the lease begins with the same
// number, so a new object has higher epochs than a deleted object of the same name. If the object does not
// exist, the entry is empty.
func (o object) entry() engine.Entry {
	if !o.exists() {
		return engine.Entry{}
	}
	e := engine.Entry{Version: strconv.FormatInt(o.Revision, 10) + " " + o.marks() + " " + o.etag, Revision: o.Revision}
	if o.Lease != nil {
		e.Retained = *o.Lease
	} else {
		e.Record.Epoch, e.Unwritten = uint64(o.Revision), true
	}
	return e
}

// The function after returns the object that is written next, to replace the object with the given version.
// The result old is the ETag of the replaced object.
func after(name, version string, next engine.Retained) (o object, old string, err error) {
	number, rest, _ := strings.Cut(version, " ")
	marks, old, _ := strings.Cut(rest, " ")
	revision, err := strconv.ParseInt(number, 10, 64)
	if err != nil || old == "" {
		return o, "", fmt.Errorf("s3lease: version %q is not of this store", version)
	}
	return object{Name: name, Write: rand.Text(), Revision: revision + 1, Before: marks, Lease: &next}, old, nil
}

// mostBytes is larger than any object of a Store, because the name and the owner of a lease are short: each
// of them has at most 1024 bytes.
const mostBytes = 64 << 10

// The method get reads an object, which may not exist.
func (b *backend) get(ctx context.Context, key string) (object, error) {
	out, err := b.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.bucket, Key: aws.String(b.prefix + key)})
	switch status, code := answerOf(err); {
	case status == http.StatusNotFound && code != noBucket:
		return object{}, nil
	case err != nil:
		return object{}, b.describeError("read object", key, err)
	}
	defer out.Body.Close()
	data, err := io.ReadAll(io.LimitReader(out.Body, mostBytes))
	if err != nil {
		return object{}, b.describeError("read object", key, err)
	}
	var o object
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	switch err = d.Decode(&o); {
	case err != nil:
	case !json.Valid(data):
		err = errors.New("more than one JSON object")
	case len(o.Write) < markLength || len(o.Before)%markLength != 0 || o.Revision < 0 || (o.Lease == nil) != (o.Revision == 0):
		err = errors.New("a member is missing or wrong")
	case keyOf(o.Name) != key || aws.ToString(out.ETag) == "" || out.LastModified == nil:
		err = fmt.Errorf("it has the name %q, and a wrong key, no ETag or no time", o.Name)
	}
	if err != nil {
		return object{}, fmt.Errorf("s3lease: object %q of bucket %q: %w: %w; to free the lease, delete the object", b.prefix+key, b.bucket, lease.ErrCorrupt, err)
	}
	if o.etag = *out.ETag; o.Lease == nil {
		o.Revision = max(1, out.LastModified.UnixMilli())
	}
	return o, nil
}

// The method put writes an object, on condition that the ETag of the current object equals the parameter old.
// If the parameter old is empty, the condition is that there is no object. The result is [lease.ErrConflict]
// if the service has refused the write, because the condition was not met or another write of the object was
// in progress. After any other error, such as a status of 500 or above, the service may have written the
// object.
func (b *backend) put(ctx context.Context, key, old string, o object) (etag string, err error) {
	data, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	in := &s3.PutObjectInput{Bucket: &b.bucket, Key: aws.String(b.prefix + key), Body: bytes.NewReader(data), ContentType: aws.String("application/json")}
	if old == "" {
		in.IfNoneMatch = aws.String("*")
	} else {
		in.IfMatch = &old
	}
	out, err := b.client.PutObject(ctx, in)
	switch status, code := answerOf(err); {
	case err == nil && aws.ToString(out.ETag) != "":
		return *out.ETag, nil
	case err == nil:
		return "", b.describeError("write object", key, errors.New("the answer has no ETag"))
	case status == http.StatusPreconditionFailed, code == busy, status == http.StatusNotFound && code != noBucket:
		return "", lease.ErrConflict
	}
	return "", b.describeError("write object", key, err)
}
