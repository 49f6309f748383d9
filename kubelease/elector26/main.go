// Elector26 runs an elector of client-go v0.26. An elector of client-go v0.26 ignores the duration
// in the record, and waits for its own LeaseDuration before it replaces a holder. The tests of
// kubelease run Elector26 as a separate program, because one program cannot contain two versions of
// client-go. Elector26 prints "leads" and "stops", and exits when its standard input is closed.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func main() {
	address := flag.String("address", "", "host and port of the API server")
	token := flag.String("token", "", "bearer token")
	namespace := flag.String("namespace", "default", "of the object")
	name := flag.String("name", "", "of the object")
	identity := flag.String("identity", "", "of the elector")
	duration := flag.Duration("duration", 15*time.Second, "LeaseDuration")
	deadline := flag.Duration("deadline", 10*time.Second, "RenewDeadline")
	retry := flag.Duration("retry", 2*time.Second, "RetryPeriod")
	release := flag.Bool("release", false, "ReleaseOnCancel")
	flag.Parse()
	client, err := coordinationclient.NewForConfig(&rest.Config{Host: "https://" + *address, BearerToken: *token, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: *namespace, Name: *name}, Client: client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: *identity}},
		LeaseDuration: *duration, RenewDeadline: *deadline, RetryPeriod: *retry, ReleaseOnCancel: *release,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { fmt.Println("leads") },
			OnStoppedLeading: func() { fmt.Println("stops") },
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	elector.Run(ctx)
}
