package s3lease

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/fencedlease/lease/open"
)

// A program that imports this package can open s3:// with [open.Store]. The prefix of the keys is PREFIX and
// a slash. The AWS SDK finds the credentials. It also finds the region and the endpoint if they are not in
// the URL.
func init() {
	open.Register("s3", "s3://BUCKET[/PREFIX][?endpoint=URL&region=REGION&path-style=true]", openURL)
}

type opened struct{ *Store }

func (opened) Close() error { return nil }

func openURL(ctx context.Context, text string) (open.Leases, error) {
	client, bucket, o, err := parseURL(ctx, text)
	var s *Store
	if err == nil {
		s, err = New(client, bucket, o)
	}
	if err != nil {
		return nil, &open.URLError{Scheme: "s3", Err: err}
	}
	return opened{s}, nil
}

// parseURL returns the arguments of [New] for a URL.
func parseURL(ctx context.Context, text string) (client *s3.Client, bucket string, o *Options, err error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, "", nil, open.ErrMalformed
	}
	o = new(Options)
	if path := strings.Trim(u.Path, "/"); path != "" {
		o.Prefix = path + "/"
	}
	q := u.Query()
	endpoint, region, style := q.Get("endpoint"), q.Get("region"), q.Get("path-style")
	for _, known := range []string{"endpoint", "region", "path-style"} {
		q.Del(known)
	}
	at, err := url.Parse(endpoint)
	switch {
	case u.User != nil || u.Fragment != "":
		return nil, "", nil, errors.New("write no credentials and no # into it: the credentials come from the environment")
	case len(q) > 0:
		return nil, "", nil, errors.New("the parameters are endpoint, region and path-style")
	case err != nil || at.User != nil || endpoint != "" && at.Host == "":
		return nil, "", nil, errors.New("the endpoint must be a URL such as https://HOST:PORT")
	case style != "" && style != "true" && style != "false":
		return nil, "", nil, errors.New("path-style must be true or false")
	}
	cfg, err := config.LoadDefaultConfig(ctx, config.WithRegion(region))
	if err != nil {
		return nil, "", nil, err
	}
	client = s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.UsePathStyle = style == "true"
		if endpoint != "" {
			o.BaseEndpoint = &endpoint
		}
		if o.BaseEndpoint != nil { // the service may not be Amazon's
			o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired // another service may not support the newer checksums
			o.Region = cmp.Or(o.Region, "us-east-1")                                  // the signature of a request needs a region
		}
	})
	if client.Options().Region == "" {
		return nil, "", nil, errors.New("the region of the bucket is missing: add ?region=REGION, or set AWS_REGION")
	}
	return client, u.Host, o, nil
}
