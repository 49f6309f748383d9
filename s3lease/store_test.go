package s3lease

import (
	"bytes"
	"cmp"
	"context"
	crand "crypto/rand"
	"math/rand/v2"
	"net/http"
	neturl "net/url"
	"os"
	"path"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/fencedlease/lease/internal/check/enginetest"
	"github.com/fencedlease/lease/internal/check/processes"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/leasetest/linearize"
)

var (
	idA, idB                = enginetest.IDA, enginetest.IDB
	acquire, renew, release = enginetest.Acquire, enginetest.Renew, enginetest.Release
	do                      = enginetest.Do
)

func TestMain(m *testing.M) {
	if processes.Hold(func(url string) (processes.Store, error) { return openStore(url, nil) }) {
		return
	}
	os.Exit(m.Run())
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
		histories(t, *service, 100, linearize.Workload{Term: time.Second, Timeout: time.Minute}, nil)
		return
	}
	_, url := newDouble(t)
	histories(t, url, 1000, linearize.Workload{Term: 6 * time.Millisecond, Timeout: time.Minute}, nil)
}

// SPEC A2, A4: the same holds while answers are lost, requests arrive late or twice, and the service is busy or fails.
func TestHistoriesUnderFaults(t *testing.T) {
	d, url := newDouble(t)
	d.harmed(8)
	histories(t, url, 400, linearize.Workload{Term: 100 * time.Millisecond, Timeout: 200 * time.Millisecond}, nil)
}

func histories(t *testing.T, url string, runs int, w linearize.Workload, harm func(*rand.Rand) string) {
	if testing.Short() {
		runs /= 20
	}
	clients := enginetest.Clients(4, func(int) enginetest.Store { return newStore(t, url, nil) })
	enginetest.Histories(t, runs, func(seed uint64, name string) (int, error) {
		w := w
		w.Seed, w.Name = seed, name
		return linearize.Run(t.Context(), clients, &linearize.Options{Observed: true, Late: true}, &w)
	}, harm)
}

// SPEC G1, G2, H9: no stale write passes the guard while holders are paused, resumed and killed, and the service harms
// their requests.
func TestHoldersUnderFaults(t *testing.T) {
	d, url := newDouble(t)
	d.harmed(40)
	hold(t, []string{url, url, url}, func(*rand.Rand) string { return "" })
}

func hold(t *testing.T, urls []string, harm func(*rand.Rand) string) {
	rounds := 60
	if testing.Short() {
		rounds = 8
	}
	processes.Prove(t, processes.Options{Name: t.Name(), Endpoints: urls, Duration: time.Second}, rounds, harm)
}
