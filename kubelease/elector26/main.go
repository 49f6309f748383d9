// Elector26 is an elector of client-go v0.26, which is older than the rule that an elector waits for
// the duration in the record. The tests of kubelease run it: two versions of client-go do not fit into
// one program. It prints "leads" and "stops", and ends when its standard input does.
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
