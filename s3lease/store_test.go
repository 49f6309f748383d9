package s3lease

import (
	"bytes"
	"cmp"
	"context"
	crand "crypto/rand"
	"net/http"
	neturl "net/url"
	"path"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/leasetest/linearize"
)

var (
	idA, idB                = shorthand.IDA, shorthand.IDB
	acquire, renew, release = shorthand.Acquire, shorthand.Renew, shorthand.Release
	do                      = shorthand.Do
)

func TestMain(m *testing.M) {
	enginetest.Main(m, func(url string) (lease.Authority, error) {
		s, err := openStore(url, nil)
		if err != nil {
			return nil, err
		}
		return s.Authority(), nil
	}, nil)
}

// run is part of the prefix in a bucket that may have objects of earlier runs.
var run = "run" + crand.Text()

// openStore opens the bucket of a double or a gateway, or one whose URL begins with s3.
func openStore(url string, way aws.HTTPClient) (*Store, error) {
	if u, err := neturl.Parse(url); err == nil && u.Scheme == "s3" {
		c, err := clientOf(context.Background(), u)
		if err != nil {
			return nil, err
		}
		o := c.Options()
		if way != nil {
			o.HTTPClient = way
		}
		return New(s3.New(o), u.Host, &Options{Prefix: path.Join("x", u.Path, run)[2:] + "/", PollInterval: 100 * time.Millisecond})
	}
	c := s3.New(s3.Options{BaseEndpoint: &url, UsePathStyle: true, Region: "us-east-1", HTTPClient: way,
		Credentials:                credentials.NewStaticCredentialsProvider("user", "password", ""),
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired})
	return New(c, "bucket", &Options{PollInterval: 20 * time.Millisecond})
}

func newStore(t testing.TB, url string, way aws.HTTPClient) *Store {
	t.Helper()
	s, err := openStore(url, way)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConformance(t *testing.T) {
	if *service != "" {
		conform(t, *service, 2*time.Second)
		return
	}
	_, url := newDouble(t)
	conform(t, url, 250*time.Millisecond)
}

func conform(t *testing.T, url string, unit time.Duration) {
	suites := []string{"Store", "Authority", "Lease", "LoadingAuthority"}
	if testing.Short() {
		suites = suites[:2]
	}
	enginetest.Suites{
		Options: enginetest.Observed(unit),
		Open:    func(t testing.TB) enginetest.Store { return newStore(t, url, nil) },
		Corrupt: func(t testing.TB, name string) { write(t, url, name, "free") },
		Connect: func(t testing.TB, transmit leasetest.Transmit) enginetest.Store {
			return newStore(t, url, linked(transmit))
		},
	}.Run(t, suites...)
}

// write writes the object of a name by hand.
func write(t testing.TB, url, name, data string) {
	t.Helper()
	b := newStore(t, url, nil).backend
	if _, err := b.client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &b.bucket, Key: aws.String(b.prefix + keyOf(name)), Body: bytes.NewReader([]byte(data))}); err != nil {
		t.Fatal(err)
	}
}

// linked sends the requests of a client through transmit.
type linked leasetest.Transmit

func (l linked) Do(r *http.Request) (res *http.Response, err error) {
	lost := l(r.Context(), func() error {
		res, err = http.DefaultClient.Do(r)
		return err
	})
	return res, cmp.Or(lost, err)
}

// SPEC A2, A4: histories are linearizable by the clocks of the clients.
func TestHistories(t *testing.T) {
	if *service != "" {
		histories(t, enginetest.At(*service, 4), linearize.TestOptions{Runs: 100, Workload: linearize.Workload{Term: time.Second}})
		return
	}
	_, url := newDouble(t)
	histories(t, enginetest.At(url, 4), linearize.TestOptions{Runs: 1000})
}

// SPEC A2, A4: the same holds while answers are lost, requests arrive late or twice, and the service is busy or fails.
func TestHistoriesUnderFaults(t *testing.T) {
	d, url := newDouble(t)
	d.harmed(8)
	histories(t, enginetest.At(url, 4), linearize.TestOptions{Runs: 400, Workload: linearize.Workload{Term: 100 * time.Millisecond, Timeout: 200 * time.Millisecond}})
}

func histories(t *testing.T, target enginetest.Target, o linearize.TestOptions) {
	o.Options = linearize.Options{Observed: true, Late: true}
	linearize.TestHistories(t, target, func(t testing.TB, url string) enginetest.Store { return newStore(t, url, nil) }, &o)
}

// SPEC G1, G2, H9: no stale write passes the guard while holders are paused, resumed and killed, and the service harms
// their requests.
func TestHoldersUnderFaults(t *testing.T) {
	d, url := newDouble(t)
	d.harmed(40)
	enginetest.TestHolders(t, enginetest.At(url, 3), nil)
}
