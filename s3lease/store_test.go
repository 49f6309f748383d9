package s3lease

import (
	"cmp"
	crand "crypto/rand"
	"flag"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/fencedlease/lease/internal/check/linked"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/leasetest/linearize"
)

// service is the URL of a bucket. With it, TestConformance and TestHistories run there instead of at the double.
var service = flag.String("s3.url", "", "test the service of this bucket, such as s3://BUCKET/PREFIX?region=REGION")

var (
	idA            = shorthand.IDA
	acquire, renew = shorthand.Acquire, shorthand.Renew
	do             = shorthand.Do
)

func TestMain(m *testing.M) {
	if flag.Parse(); *service == "" {
		os.Setenv("AWS_ACCESS_KEY_ID", "user")
		os.Setenv("AWS_SECRET_ACCESS_KEY", "password")
		os.Setenv("AWS_CONFIG_FILE", "/dev/null")
	} else { // the bucket may have objects of earlier runs
		bucket, parameters, _ := strings.Cut(*service, "?")
		*service = strings.TrimSuffix(bucket, "/") + "/run" + crand.Text() + "?" + parameters
	}
	enginetest.Main(m, nil, nil)
}

// at returns the URL of the bucket of a double or a gateway.
func at(addr string) string { return "s3://bucket?path-style=true&endpoint=http://" + addr }

// connect returns a client of the bucket of a URL, which sends its requests through way unless it is nil.
func connect(t testing.TB, url string, way aws.HTTPClient) (client *s3.Client, bucket string, o *Options) {
	t.Helper()
	client, bucket, o, err := parseURL(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	settings := client.Options()
	if way != nil {
		settings.HTTPClient = way
	}
	return s3.New(settings), bucket, o
}

// newStore opens the bucket of a URL with a short PollInterval.
func newStore(t testing.TB, url string, way aws.HTTPClient) *Store {
	t.Helper()
	client, bucket, o := connect(t, url, way)
	o.PollInterval = 20 * time.Millisecond
	s, err := New(client, bucket, o)
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
		Connect: overLink(url),
	}.Run(t, suites...)
}

// overLink returns a function that opens a store whose requests go through a function.
func overLink(url string) func(testing.TB, leasetest.Transmit) enginetest.Store {
	return func(t testing.TB, transmit leasetest.Transmit) enginetest.Store {
		return newStore(t, url, through(transmit))
	}
}

// write writes the object of a name by hand.
func write(t testing.TB, url, name, data string) {
	t.Helper()
	client, bucket, o := connect(t, url, nil)
	key := cmp.Or(o.Prefix, DefaultPrefix) + keyOf(name)
	if _, err := client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader(data)}); err != nil {
		t.Fatal(err)
	}
}

// through returns a client that sends its requests through transmit.
func through(transmit leasetest.Transmit) aws.HTTPClient {
	return &http.Client{Transport: linked.Transport(transmit, http.DefaultTransport)}
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

// newGateway starts a real S3 server, VersityGW, which keeps objects in files, until the end of the test.
func newGateway(t testing.TB) *enginetest.Program {
	t.Helper()
	dir := t.TempDir()
	program, err := exec.Command("go", "-C", "../internal/check/engines", "tool", "-n", "versitygw").Output() // builds it if necessary
	if err == nil {
		err = os.MkdirAll(filepath.Join(dir, "files", "bucket"), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	g, err := enginetest.StartProgram(dir, func(addr, _ string) *exec.Cmd {
		cmd := exec.Command(strings.TrimSpace(string(program)), "--port", addr, "--keep-alive", "--quiet", "posix", filepath.Join(dir, "files"))
		cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY_ID=user", "ROOT_SECRET_ACCESS_KEY=password")
		return cmd
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Kill() })
	return g
}

func TestConformanceOfAGateway(t *testing.T) {
	t.Parallel()
	conform(t, at(newGateway(t).Addr()), 500*time.Millisecond)
}

func TestHistoriesOfAGateway(t *testing.T) {
	t.Parallel()
	histories(t, enginetest.At(at(newGateway(t).Addr()), 4), linearize.TestOptions{Runs: 400, Workload: linearize.Workload{Term: 30 * time.Millisecond}})
}

// The same holds while the gateway is paused and resumed, killed and started again, and while its connections fail.
func TestHistoriesOfAGatewayUnderFaults(t *testing.T) {
	t.Parallel()
	histories(t, underFaults(t), linearize.TestOptions{Runs: 400})
}

// SPEC G1, G2, H9: the same faults, while holders are paused, resumed and killed.
func TestHoldersAtAGatewayUnderFaults(t *testing.T) {
	t.Parallel()
	enginetest.TestHolders(t, underFaults(t), nil)
}

func underFaults(t testing.TB) enginetest.Target {
	return enginetest.UnderFaults(t, newGateway(t), at)
}
