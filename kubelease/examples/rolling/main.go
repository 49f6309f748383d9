// Rolling shows how a Deployment can be moved to this library by a rolling update, if its replicas have used
// the elector of client-go before. Rolling starts three replicas with electors, and replaces them one after
// the other by replicas that use a Session. Meanwhile, old and new replicas contend for the same object.
// Rolling prints which replica leads, and fails if two replicas lead at once.
//
//	go run ./examples/rolling -kubeconfig ~/.kube/config -namespace default
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/kubelease"
	"github.com/fencedlease/lease/session"
)

var (
	kubeconfig = flag.String("kubeconfig", "", "the `file` that names the cluster and the user (default: those of the pod that this runs in)")
	namespace  = flag.String("namespace", "default", "the namespace of the lease")
	name       = flag.String("name", "rolling-example", "the name of the lease")
	pause      = flag.Duration("pause", 3*time.Second, "how long to wait between two steps of the update")
)

const (
	duration = 4 * time.Second // the duration of the lease, for old and new replicas
	replicas = 3
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	if err := update(); err != nil {
		log.Fatal(err)
	}
}

// The function update replaces the old replicas with new ones, one at a time, as a Deployment with maxSurge 1
// does.
func update() error {
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	client, err := coordinationclient.NewForConfig(kubelease.ClientConfig(config))
	if err != nil {
		return err
	}
	var leads leaders
	var all [2 * replicas]*replica
	for i := range replicas {
		all[i] = start(fmt.Sprint("old-", i), func(ctx context.Context, me string) error { return elect(ctx, client, me, &leads) })
	}
	for i := range replicas {
		time.Sleep(*pause)
		all[replicas+i] = start(fmt.Sprint("new-", i), func(ctx context.Context, me string) error { return hold(ctx, client, me, &leads) })
		time.Sleep(*pause)
		err = errors.Join(err, all[i].stop())
	}
	time.Sleep(2 * duration)
	for _, r := range all[replicas:] {
		err = errors.Join(err, r.stop())
	}
	switch {
	case err != nil:
		return err
	case leads.two != "":
		return errors.New(leads.two)
	case !strings.HasPrefix(leads.last, "new"):
		return fmt.Errorf("the last leader was %q", leads.last)
	}
	fmt.Println("at no time did two lead")
	return nil
}

// The function elect runs an old replica, which uses the elector of client-go.
func elect(ctx context.Context, client coordinationclient.LeasesGetter, me string, leads *leaders) error {
	e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: *namespace, Name: *name}, Client: client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: me}},
		LeaseDuration: duration, RenewDeadline: duration / 2, RetryPeriod: duration / 10,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { leads.begin(me, "none") },
			OnStoppedLeading: func() { leads.end(me) },
		},
	})
	if err != nil {
		return err
	}
	e.Run(klog.NewContext(ctx, klog.Logger{}))
	return nil
}

// The function hold runs a new replica. The Session of the new replica contends with the electors of the old
// replicas for the same object.
func hold(ctx context.Context, client coordinationclient.CoordinationV1Interface, me string, leads *leaders) error {
	store, err := kubelease.New(client, *namespace, nil)
	if err != nil {
		return err
	}
	l, err := store.Lease(*name, &session.Options{Owner: me, Duration: duration, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer l.Close(context.Background())
	err = session.Run(ctx, l, func(ctx context.Context, tok lease.Token) error {
		leads.begin(me, tok)
		defer leads.end(me)
		<-ctx.Done()
		return nil // If the lease was lost, Run returns the loss.
	}, &session.RunOptions{Again: session.AfterLoss})
	if session.Stopped(ctx, err) {
		return nil // The replica was told to stop.
	}
	return err
}

// The type leaders records which replica leads.
type leaders struct {
	mu   sync.Mutex
	who  string // leads now
	last string // has led last
	two  string // describes two replicas that led at the same time, if there were any
}

func (l *leaders) begin(me string, tok lease.Token) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.who != "" {
		l.two = fmt.Sprintf("%s leads while %s leads", me, l.who)
	}
	l.who, l.last = me, me
	fmt.Println(me, "leads, token", tok)
}

func (l *leaders) end(me string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.who == me {
		l.who = ""
	}
}

// A replica simulates a pod in a goroutine of this program.
type replica struct {
	cancel context.CancelFunc
	ended  chan error
}

func start(me string, run func(context.Context, string) error) *replica {
	ctx, cancel := context.WithCancel(context.Background())
	r := &replica{cancel, make(chan error, 1)}
	go func() { r.ended <- run(ctx, me) }()
	return r
}

func (r *replica) stop() error {
	r.cancel()
	return <-r.ended
}
