// Leader is a program that runs in several processes, as the replicas of a Deployment do. Only one
// process works at a time. Without the flag -process, Leader starts two processes and kills the
// process that holds the lease. The process that still runs then acquires the lease with a newer
// token. Leader runs outside of a cluster, with a kubeconfig:
//
//	go run ./examples/leader -kubeconfig ~/.kube/config -namespace default
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/takeover"
	"github.com/fencedlease/lease/kubelease"
	"github.com/fencedlease/lease/session"
)

var (
	kubeconfig = flag.String("kubeconfig", "", "file with the cluster and the user; empty: those of the pod that this runs in")
	namespace  = flag.String("namespace", "default", "of the lease")
	name       = flag.String("name", "leader-example", "of the lease")
	duration   = flag.Duration("duration", 4*time.Second, "of the lease")
	process    = flag.String("process", "", "run as the process of that name; in a Deployment, the name of the pod")
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	err := error(nil)
	if *process != "" {
		err = lead()
	} else {
		err = takeover.Watch(*duration / 2)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// lead runs in a process. lead waits for the lease and works while it leads. After a loss of the
// lease, lead waits again.
func lead() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	client, err := coordinationclient.NewForConfig(kubelease.ClientConfig(config))
	if err != nil {
		return err
	}
	store, err := kubelease.New(client, *namespace, nil)
	if err != nil {
		return err
	}
	l, err := store.Lease(*name, &session.Options{Owner: *process, Duration: *duration})
	if err != nil {
		return err
	}
	fmt.Println("waits")
	err = session.Run(ctx, l, func(ctx context.Context, tok lease.Token) error {
		fmt.Println(tok) // Real work sends the token with each write.
		<-ctx.Done()
		return nil // If the lease was lost, Run returns the loss.
	}, &session.RunOptions{Again: session.AfterLoss})
	if session.Stopped(ctx, err) {
		err = nil // The program was told to stop.
	}
	return errors.Join(err, l.Close(context.Background()))
}
