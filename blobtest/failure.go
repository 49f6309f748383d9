package blobtest

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"net/http"
	"time"
)

// A failure is the answer to a request that fails, with the status, the error code and the message of the
// service. The message is the reason phrase of the response, and is repeated in the body. Failures are shared
// and never changed, so the methods "with" and "withHeader" return modified copies.
type failure struct {
	status  int
	code    string // header x-ms-error-code
	text    string
	details []detail    // elements after the message, such as HeaderName
	header  [][2]string // additional headers, by name and value
}

type detail struct{ name, value string }

func (f *failure) Error() string { return f.text }

func (f *failure) with(name, value string) *failure {
	g := *f
	g.details = append(f.details[:len(f.details):len(f.details)], detail{name, value})
	return &g
}

// withHeader returns a copy of f with an additional header.
func (f *failure) withHeader(name, value string) *failure {
	g := *f
	g.header = append(f.header[:len(f.header):len(f.header)], [2]string{name, value})
	return &g
}

// These failures do not depend on a lease. The file outcome.go contains those that do.
var (
	errInvalidHeader   = &failure{status: 400, code: "InvalidHeaderValue", text: "The value for one of the HTTP headers is not in the correct format."}
	errMissingHeader   = &failure{status: 400, code: "MissingRequiredHeader", text: "An HTTP header that's mandatory for this request is not specified."}
	errHeader          = &failure{status: 400, code: "UnsupportedHeader", text: "One of the HTTP headers specified in the request is not supported."}
	errInvalidQuery    = &failure{status: 400, code: "InvalidQueryParameterValue", text: "Value for one of the query parameters specified in the request URI is invalid."}
	errMissingQuery    = &failure{status: 400, code: "MissingRequiredQueryParameter", text: "A query parameter that's mandatory for this request is not specified."}
	errOutOfRangeQuery = &failure{status: 400, code: "OutOfRangeQueryParameterValue", text: "One of the query parameters specified in the request URI is outside the permissible range."}
	errQuery           = &failure{status: 400, code: "UnsupportedQueryParameter", text: "One of the query parameters specified in the request URI is not supported."}
	errVerb            = &failure{status: 405, code: "UnsupportedHttpVerb", text: "The resource doesn't support specified Http Verb."}
	errURI             = &failure{status: 400, code: "InvalidUri", text: "The requested URI does not represent any resource on the server."}
	errResourceName    = &failure{status: 400, code: "InvalidResourceName", text: "The specified resource name contains invalid characters."}
	errNameLength      = &failure{status: 400, code: "OutOfRangeInput", text: "The specified resource name length is not within the permissible limits."}
	errInput           = &failure{status: 400, code: "InvalidInput", text: "One of the request inputs is not valid."}
	errMetadata        = &failure{status: 400, code: "InvalidMetadata", text: "The specified metadata is invalid. It has characters that are not permitted."}
	errMetadataSize    = &failure{status: 400, code: "MetadataTooLarge", text: "The size of the specified metadata exceeds the maximum size permitted."}
	errMD5             = &failure{status: 400, code: "Md5Mismatch", text: "The MD5 value specified in the request did not match the MD5 value calculated by the server."}
	errInvalidMD5      = &failure{status: 400, code: "InvalidMd5", text: "The MD5 value specified in the request is invalid. The MD5 value must be 128 bits and Base64-encoded."}
	errCRC64           = &failure{status: 400, code: "Crc64Mismatch", text: "The CRC64 value specified in the request did not match the CRC64 value calculated by the server."}
	errNoLength        = &failure{status: 411, code: "MissingContentLengthHeader", text: "The Content-Length header was not specified."}
	errBodySize        = &failure{status: 413, code: "RequestBodyTooLarge", text: "The request body is too large and exceeds the maximum permissible limit."}
	errBody            = &failure{status: 400, code: "IncompleteBody", text: "The request body was not received in full."}
	errRange           = &failure{status: 416, code: "InvalidRange", text: "The range specified is invalid for the current size of the resource."}

	errContainerNotFound = &failure{status: 404, code: "ContainerNotFound", text: "The specified container does not exist."}
	errContainerExists   = &failure{status: 409, code: "ContainerAlreadyExists", text: "The specified container already exists."}
	errBlobNotFound      = &failure{status: 404, code: "BlobNotFound", text: "The specified blob does not exist."}
	errBlobExists        = &failure{status: 409, code: "BlobAlreadyExists", text: "The specified blob already exists."}
	errSnapshot          = &failure{status: 400, code: "InvalidOperation", text: "Invalid operation against a blob snapshot."}
	errSnapshotsPresent  = &failure{status: 409, code: "SnapshotsPresent", text: "This operation is not permitted because the blob has snapshots."}
	errNoPendingCopy     = &failure{status: 409, code: "NoPendingCopyOperation", text: "There is currently no pending copy operation."}
	errCopySource        = &failure{status: 404, code: "CannotVerifyCopySource", text: "The specified blob does not exist."}
	errForeignSource     = &failure{status: 400, code: "CopyAcrossAccountsNotSupported", text: "The copy source account and destination account must be the same."}
	errInfiniteRequired  = &failure{status: 412, code: "InfiniteLeaseDurationRequired", text: "The lease ID matched, but the specified lease must be an infinite-duration lease."}
	errBlockList         = &failure{status: 400, code: "InvalidBlockList", text: "The specified block list is invalid."}
	errBlockListTooLong  = &failure{status: 400, code: "BlockListTooLong", text: "The block list may not contain more than 50,000 blocks."}
	errBlockID           = &failure{status: 400, code: "InvalidBlobOrBlock", text: "The specified blob or block content is invalid."}
	errBlockCount        = &failure{status: 409, code: "BlockCountExceedsLimit", text: "The uncommitted block count cannot exceed the maximum limit of 100,000 blocks."}
	errXML               = &failure{status: 400, code: "InvalidXmlDocument", text: "XML specified is not syntactically valid."}

	errCondition     = &failure{status: 412, code: "ConditionNotMet", text: "The condition specified using HTTP conditional header(s) is not met."}
	errNotModified   = &failure{status: 304, code: "ConditionNotMet", text: "The condition specified using HTTP conditional header(s) is not met."}
	errSourceCond    = &failure{status: 412, code: "SourceConditionNotMet", text: "The source condition specified using HTTP conditional header(s) is not met."}
	errUnsatisfiable = &failure{status: 400, code: "UnsatisfiableCondition", text: "The request includes an unsatisfiable condition for this operation."}
	errConditions    = &failure{status: 400, code: "MultipleConditionHeadersNotSupported", text: "Multiple condition headers are not supported."}

	errFull     = &failure{status: 507, code: "InsufficientStorage", text: "The server stores as much as its limit allows. Delete blobs, or raise -max-total of the command (Options.MaxTotal)."}
	errInternal = &failure{status: 500, code: "InternalError", text: "The server encountered an internal error. Please retry the request."}
	errTimedOut = &failure{status: 500, code: "OperationTimedOut", text: "The operation could not be completed within the permitted time."}
)

// badHeader returns the failure for a header whose value is not valid.
func badHeader(r *http.Request, name string) *failure {
	return errInvalidHeader.with("HeaderName", name).with("HeaderValue", headerOf(r, name))
}

// noHeader returns the failure for a missing header.
func noHeader(name string) *failure { return errMissingHeader.with("HeaderName", name) }

// badQuery returns a copy of f with the name and the value of an invalid query parameter.
func badQuery(f *failure, name, value, reason string) *failure {
	return f.with("QueryParameterName", name).with("QueryParameterValue", value).with("Reason", reason)
}

// failureOf returns err itself if it is a *failure, and a timeout if a deadline has expired. Any other error
// becomes an internal error, because the outcome of the request is unknown.
func failureOf(err error) *failure {
	var f *failure
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, context.DeadlineExceeded):
		return errTimedOut
	}
	return errInternal
}

// xmlBody returns the XML document of f, with a byte order mark and a time with seven fractional digits.
func (f *failure) xmlBody(requestID string, now time.Time) []byte {
	var b bytes.Buffer
	b.WriteString("\ufeff" + `<?xml version="1.0" encoding="utf-8"?><Error>`)
	element(&b, "Code", f.code)
	element(&b, "Message", f.text+"\nRequestId:"+requestID+"\nTime:"+now.UTC().Format(sevenDigits))
	for _, d := range f.details {
		element(&b, d.name, d.value)
	}
	b.WriteString("</Error>")
	return b.Bytes()
}

// sevenDigits is the time format that the service uses in XML and in the names of snapshots.
const sevenDigits = "2006-01-02T15:04:05.0000000Z"

func element(b *bytes.Buffer, name, value string) {
	b.WriteString("<" + name + ">")
	writeText(b, value)
	b.WriteString("</" + name + ">")
}

// writeText writes a text, and escapes the characters that XML reserves. It keeps line breaks, as the service
// does in error messages. A character that XML does not allow becomes U+FFFD.
func writeText(b *bytes.Buffer, value string) {
	for i, line := range bytes.Split([]byte(value), []byte("\n")) {
		if i > 0 {
			b.WriteByte('\n')
		}
		_ = xml.EscapeText(b, line) // a bytes.Buffer never returns an error
	}
}
