package kubelease_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/kubeserver"
	"github.com/fencedlease/lease/kubelease"
)

func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), client(t, shared.Address)
	t.Run("unreachable", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // the listener accepts connections, and never answers
		s := store(t, client(t, l.Addr().String()), nil)
		ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		_, err = s.Authority().Do(ctx, "jobs/nightly", acquire(idA, time.Minute))
		says(t, err, context.DeadlineExceeded, "jobs/nightly", "default/x--jobs-2fnightly", "can be reached")
		if permanent(err) {
			t.Errorf("it may come back: %v", err)
		}
	})
	t.Run("refused", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		_, err = store(t, client(t, l.Addr().String()), nil).Load(ctx, "x")
		says(t, err, nil, "connection refused", "the host and the port")
		if permanent(err) {
			t.Errorf("it may come back: %v", err)
		}
	})
	t.Run("limited", func(t *testing.T) {
		config := config(shared.Address, kubeserver.Admin)
		config.QPS, config.Burst = 0.001, 1
		slow, err := coordinationclient.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		a := store(t, slow, nil).Authority()
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err = a.Do(ctx, objectOf(t), acquire(idA, time.Minute))
		says(t, err, nil, "QPS", "kubelease.ClientConfig")
	})
	t.Run("corrupt", func(t *testing.T) {
		a := store(t, c, nil).Authority()
		for i, text := range []string{"free", `{"record":{"state":"available","epoch":1},"ttl":3}`, `{"record":{"state":"leased","epoch":1},"uid":"UID"}`, `{"uid":"UID"}`, `{"record":{"state":"available","epoch":1},"uid":"UID"}{}`} {
			name := fmt.Sprint(objectOf(t), i)
			do(t, a, name, acquire(idA, time.Minute), 0)
			object := get(t, c, name)
			object.Annotations[kubelease.Annotation] = strings.ReplaceAll(text, "UID", string(object.UID))
			put(t, c, object)
			_, err := a.Do(ctx, name, acquire(idB, time.Minute))
			says(t, err, lease.ErrCorrupt, "default/"+name, kubelease.Annotation, "kubectl delete lease -n default "+name)
			remove(t, c, name)
			do(t, a, name, acquire(idB, time.Minute), 0)
		}
	})
	t.Run("namespace", func(t *testing.T) {
		s, err := kubelease.New(c, "elsewhere", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Load(ctx, "x")
		says(t, err, nil, "elsewhere/x", "kubectl create namespace elsewhere")
	})
	t.Run("unknown user", func(t *testing.T) {
		_, err := store(t, clientset(t, shared.Address, "nobody").CoordinationV1(), nil).Load(ctx, "x")
		says(t, err, nil, "a token or a certificate")
		if !permanent(err) {
			t.Errorf("without a user it is not permanent: %v", err)
		}
	})
}

// If the API server elects the holder of an object, the Store refuses the object and does not change it.
func TestCoordinatedElection(t *testing.T) {
	t.Parallel()
	server := newServer(t, "--feature-gates=CoordinatedLeaderElection=true", "--runtime-config=coordination.k8s.io/v1beta1=true")
	c := client(t, server.Address)
	name := objectOf(t)
	a := store(t, c, nil).Authority()
	do(t, a, name, lease.Request{Action: lease.ActionRead}, 0)
	object := get(t, c, name)
	object.Spec.Strategy = new(coordinationv1.OldestEmulationVersion)
	put(t, c, object)
	_, err := a.Do(t.Context(), name, acquire(idA, time.Minute))
	says(t, err, nil, "default/"+name, "spec.strategy", "use another name")
	if !permanent(err) {
		t.Errorf("%v is not permanent", err)
	}
	if again := get(t, c, name); again.Annotations[kubelease.Annotation] != "" || again.Spec.HolderIdentity != nil {
		t.Errorf("the object is changed to %+v", again)
	}
}

// The manifest has exactly the verbs that the operations need: without one of them, an error names it.
func TestPermissions(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	text, err := os.ReadFile("rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "---\n")
	var role rbacv1.Role
	var binding rbacv1.RoleBinding
	var schema flowcontrolv1.FlowSchema
	if err := errors.Join(yaml.UnmarshalStrict([]byte(parts[0]), &role), yaml.UnmarshalStrict([]byte(parts[1]), &binding), yaml.UnmarshalStrict([]byte(parts[2]), &schema)); err != nil {
		t.Fatal(err)
	}
	if _, err := clientset(t, shared.Address, kubeserver.Admin).FlowcontrolV1().FlowSchemas().Create(ctx, &schema, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Error(err)
	}
	admin := clientset(t, shared.Address, kubeserver.Admin).RbacV1()
	verbs := role.Rules[0].Verbs
	// grant gives a user the Role of the manifest without a verb.
	grant := func(user, without string) {
		role, binding := role.DeepCopy(), binding.DeepCopy()
		role.Name, binding.Name, binding.RoleRef.Name = user, user, user
		role.Rules[0].Verbs = slices.DeleteFunc(slices.Clone(verbs), func(v string) bool { return v == without })
		binding.Subjects = []rbacv1.Subject{{Kind: "User", APIGroup: "rbac.authorization.k8s.io", Name: user}}
		if err := errors.Join(second(admin.Roles(namespace).Create(ctx, role, metav1.CreateOptions{})),
			second(admin.RoleBindings(namespace).Create(ctx, binding, metav1.CreateOptions{}))); err != nil {
			t.Fatal(err)
		}
	}
	// everything calls all methods of a Store, and returns the first error.
	everything := func(user, name string) error {
		s := store(t, clientset(t, shared.Address, user).CoordinationV1(), nil)
		a := s.Authority()
		watching, cancel := context.WithCancel(ctx)
		defer cancel()
		err := second(a.Do(ctx, name, acquire(idA, time.Minute)))
		if err == nil {
			err = second(s.Watch(watching, name))
		}
		for _, listed := range s.List(ctx, name) {
			err = errors.Join(err, listed)
		}
		if err == nil {
			err = second(a.Do(ctx, name, release(idA)))
		}
		return err
	}
	users := append([]string{""}, verbs...)
	for i, without := range users {
		user := kubeserver.Users[i]
		grant(user, without)
		name := objectOf(t) + "." + user
		var err error
		for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
			err = everything(user, name) // the server notices a new role after a moment
			allowed := without == "" && err == nil
			missed := without != "" && err != nil && strings.Contains(err.Error(), "needs the verb "+without+" ")
			if allowed || missed {
				break
			}
		}
		if without == "" {
			if err != nil {
				t.Errorf("with the manifest: %v", err)
			}
			continue
		}
		says(t, err, nil, "needs the verb "+without+" on leases", "namespace default", "rbac.yaml")
		if !permanent(err) {
			t.Errorf("without %s it is not permanent: %v", without, err)
		}
	}
}

// If the context of a request ends, the outcome is unknown. net/http reports the cause of the context,
// which can have a Code, for example if the context is bound to another lease. Even then, the error of
// the request has none. SPEC A1.
func TestCauseOfTheContextIsNoRefusal(t *testing.T) {
	for _, c := range []struct {
		hangs   string // the method of the request that gets no answer
		request func(context.Context, *kubelease.Store) error
	}{
		{"GET", func(ctx context.Context, s *kubelease.Store) error {
			return second(s.Authority().Do(ctx, "job", acquire(idA, time.Minute)))
		}},
		{"POST", func(ctx context.Context, s *kubelease.Store) error {
			return second(s.Authority().Do(ctx, "job", acquire(idA, time.Minute)))
		}},
		{"PUT", func(ctx context.Context, s *kubelease.Store) error {
			return second(s.Authority().Do(ctx, "job", acquire(idA, time.Minute)))
		}},
		{"GET", func(ctx context.Context, s *kubelease.Store) error { return second(s.Watch(ctx, "job")) }},
		{"GET", func(ctx context.Context, s *kubelease.Store) (failed error) {
			for _, err := range s.List(ctx, "") {
				failed = err
			}
			return failed
		}},
	} {
		for _, cause := range []error{lease.ErrReleased, &lease.LostError{Name: "other", Reason: lease.ErrBroken, Err: context.Canceled}} {
			synctest.Test(t, func(t *testing.T) {
				s := silent(t, func(q *http.Request) bool { return q.Method == c.hangs })
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(cause) })
				err := c.request(ctx, s)
				if lease.CodeOf(err).Refusal() || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), cause.Error()) {
					t.Errorf("%s, ended because %q: %v, with the code %v", c.hangs, cause, err, lease.CodeOf(err))
				}
			})
		}
	}
}

// silent returns a store at an API server that does not answer some requests. The object exists, except
// if the server does not answer its creation.
func silent(t *testing.T, hangs func(*http.Request) bool) *kubelease.Store {
	var server sync.WaitGroup
	t.Cleanup(server.Wait)
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		server.Go(func() { _, _ = io.Copy(io.Discard, far) })
		return near, nil
	}}
	t.Cleanup(transport.CloseIdleConnections)
	answers := trip(func(q *http.Request) (*http.Response, error) {
		if hangs(q) {
			return transport.RoundTrip(q)
		}
		code, body := http.StatusOK, `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"job","namespace":"default","uid":"u","resourceVersion":"7"}}`
		switch {
		case strings.HasSuffix(q.URL.Path, "/leases"):
			body = `{"kind":"LeaseList","apiVersion":"coordination.k8s.io/v1","metadata":{"resourceVersion":"7"},"items":[]}`
		case hangs(&http.Request{Method: http.MethodPost, URL: q.URL}):
			code, body = http.StatusNotFound, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
		}
		return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: q}, nil
	})
	c, err := coordinationclient.NewForConfigAndClient(kubelease.ClientConfig(&rest.Config{Host: "http://silent.test"}), &http.Client{Transport: answers})
	if err != nil {
		t.Fatal(err)
	}
	return store(t, c, nil)
}
