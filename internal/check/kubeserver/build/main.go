// Build builds the API server that the tests of Kubernetes run against, unless that has been done,
// and prints the folder that it is in.
//
//	go run ./internal/check/kubeserver/build
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/fencedlease/lease/internal/check/kubeserver"
)

func main() {
	folder, err := kubeserver.Binaries(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(folder)
}
