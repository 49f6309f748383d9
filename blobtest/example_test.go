package blobtest_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/fencedlease/lease/blobtest"
)

// A program acquires a lease and writes. Then time passes, the lease expires, and the next write is
// refused. A real program uses an SDK client with srv.URL, srv.Account and srv.Key.
func Example() {
	srv, err := blobtest.NewServer(nil, &blobtest.Options{AllowAnyone: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	send := func(method, target string, header ...string) {
		req, _ := http.NewRequest(method, srv.URL+target, nil)
		req.Header.Set("x-ms-version", "2025-11-05")
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			fmt.Println(err)
			return
		}
		res.Body.Close()
		fmt.Println(method, target, res.Status)
	}
	const id = "1f812371-a41d-49e6-b123-f4b542e851c5"
	send("PUT", "/jobs?restype=container")
	send("PUT", "/jobs/nightly", "x-ms-blob-type", "BlockBlob")
	send("PUT", "/jobs/nightly?comp=lease", "x-ms-lease-action", "acquire", "x-ms-lease-duration", "15", "x-ms-proposed-lease-id", id)
	send("PUT", "/jobs/nightly", "x-ms-blob-type", "BlockBlob", "x-ms-lease-id", id)
	srv.Advance(15 * time.Second)
	send("PUT", "/jobs/nightly", "x-ms-blob-type", "BlockBlob", "x-ms-lease-id", id)
	// Output:
	// PUT /jobs?restype=container 201 Created
	// PUT /jobs/nightly 201 Created
	// PUT /jobs/nightly?comp=lease 201 Created
	// PUT /jobs/nightly 201 Created
	// PUT /jobs/nightly 412 A lease ID was specified, but the lease for the blob has expired.
}
