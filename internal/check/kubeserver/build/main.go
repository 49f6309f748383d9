// Build builds the API server for the tests of Kubernetes, unless it has been built, and prints its folder.
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
