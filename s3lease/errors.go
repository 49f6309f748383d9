package s3lease

import (
	"errors"
	"fmt"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"github.com/fencedlease/lease/engine"
)

const (
	noBucket = "NoSuchBucket"
	busy     = "ConditionalRequestConflict" // another write of the object is in progress
)

// The keys of advices are error codes of the service that a retry cannot fix. The values say what the user
// can do about these errors.
var advices = map[string]string{
	noBucket:                       "make the bucket",
	"AccessDenied":                 "the user needs s3:GetObject and s3:PutObject for the objects and, because a missing object is reported as AccessDenied without it, s3:ListBucket for the bucket",
	"InvalidAccessKeyId":           "check the credentials",
	"SignatureDoesNotMatch":        "check the credentials",
	"PermanentRedirect":            "the bucket is in another region",
	"AuthorizationHeaderMalformed": "the bucket may be in another region",
	"NotImplemented":               "the service does not support conditional writes",
}

// answerOf returns the HTTP status and the error code in the answer of the service.
func answerOf(err error) (status int, code string) {
	var answer *awshttp.ResponseError
	if errors.As(err, &answer) {
		status = answer.HTTPStatusCode()
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		code = api.ErrorCode()
	}
	return status, code
}

// describeError adds the key to an error. If a retry cannot fix the error, describeError also adds advice.
func (b *backend) describeError(what, key string, err error) error {
	if err == nil {
		return nil
	}
	_, code := answerOf(err)
	advice := advices[code]
	return engine.WithAdvice(fmt.Errorf("s3lease: %s %q of bucket %q: %w", what, b.prefix+key, b.bucket, err), advice, advice != "")
}
