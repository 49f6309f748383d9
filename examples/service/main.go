// Service is the service to which examples/leader writes. Its guard rejects a request whose token is older
// than the newest token that the guard has seen. The guard keeps that token only in memory, so the token is
// lost when the service exits. A real service stores the token with its data.
//
//	go run ./examples/service &
//	go run ./examples/leader
package main

import (
	"flag"
	"log"
	"net/http"

	"github.com/fencedlease/lease/fencing"
)

func newHandler() (http.Handler, error) {
	return fencing.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		log.Print("a write with token ", r.Header.Get(string(fencing.DefaultHeader)))
	}), nil)
}

func main() {
	addr := flag.String("addr", "localhost:8080", "the `address` to listen at")
	flag.Parse()
	h, err := newHandler()
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe(*addr, h))
}
