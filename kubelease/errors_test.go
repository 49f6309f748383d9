package kubelease_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/kubeserver"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/kubelease"
)

func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	limits := config(shared.Address, kubeserver.Admin)
	limits.QPS, limits.Burst = 0.001, 1
	limited, err := coordinationclient.NewForConfig(limits)
	if err != nil {
		t.Fatal(err)
	}
	c := client(t, shared.Address)
	elsewhere, err := kubelease.New(c, "elsewhere", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []struct {
		what      string
		store     *kubelease.Store
		wait      time.Duration
		cause     error
		permanent bool
		says      []string
	}{
		{"unreachable", store(t, client(t, silent.Addr().String()), nil), 300 * time.Millisecond, context.DeadlineExceeded, false,
			[]string{"jobs/nightly", "default/x--jobs-2fnightly", "can be reached"}},
		{"refused", store(t, client(t, closed.Addr().String()), nil), time.Minute, nil, false, []string{"connection refused", "the host and the port"}},
		{"limited", store(t, limited, nil), time.Second, nil, false, []string{"QPS", "kubelease.ClientConfig"}},
		{"namespace", elsewhere, time.Minute, nil, false, []string{"elsewhere/x--jobs", "kubectl create namespace elsewhere"}},
		{"unknown user", store(t, clientset(t, shared.Address, "nobody").CoordinationV1(), nil), time.Minute, nil, true, []string{"a token or a certificate"}},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), e.wait)
		_, err := e.store.Authority().Do(ctx, "jobs/nightly", acquire(idA, time.Minute))
		cancel()
		says(t, err, e.cause, e.says...)
		if permanent(err) != e.permanent {
			t.Errorf("%s: permanent is %v: %v", e.what, !e.permanent, err)
		}
	}
	a := store(t, c, nil).Authority()
	for i, text := range []string{"free", `{"record":{"state":"available","epoch":1},"ttl":3}`, `{"record":{"state":"leased","epoch":1},"uid":"UID"}`, `{"uid":"UID"}`, `{"record":{"state":"available","epoch":1},"uid":"UID"}{}`} {
		name := fmt.Sprint(objectOf(t), i)
		do(t, a, name, acquire(idA, time.Minute), 0)
		object := get(t, c, name)
		object.Annotations[kubelease.Annotation] = strings.ReplaceAll(text, "UID", string(object.UID))
		put(t, c, object)
		_, err := a.Do(t.Context(), name, acquire(idB, time.Minute))
		says(t, err, lease.ErrCorrupt, "default/"+name, kubelease.Annotation, "kubectl delete lease -n default "+name)
		remove(t, c, name)
		do(t, a, name, acquire(idB, time.Minute), 0)
	}
}

// If the API server elects the holder of an object, the Store refuses the object and does not change it.
func TestCoordinatedElection(t *testing.T) {
	for _, spec := range []string{`{"strategy":"OldestEmulationVersion"}`, `{"preferredHolder":"pod"}`} {
		s := fake(t, spec, func(q *http.Request) bool {
			if q.Method != http.MethodGet {
				t.Errorf("sent %s", q.Method)
			}
			return false
		})
		_, err := s.Authority().Do(t.Context(), "job", acquire(idA, time.Minute))
		if says(t, err, nil, "default/job", "spec.strategy", "use another name"); !permanent(err) {
			t.Errorf("%v is not permanent", err)
		}
	}
}

// The manifest has exactly the verbs that the operations need: without one of them, an error names it.
func TestPermissions(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	role, binding, schema := manifest(t)
	if _, err := clientset(t, shared.Address, kubeserver.Admin).FlowcontrolV1().FlowSchemas().Create(ctx, schema, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
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
	for i, without := range append([]string{""}, verbs...) {
		user := kubeserver.Users[i]
		grant(user, without)
		var err error
		shorthand.Eventually(t, fmt.Sprintf("without the verb %q", without), func(context.Context) error { // the server notices a new role after a moment
			err = everything(user, objectOf(t)+"."+user)
			switch {
			case without == "":
				return err
			case err != nil && strings.Contains(err.Error(), "needs the verb "+without+" "):
				return nil
			}
			return fmt.Errorf("no error names it: %v", err)
		})
		if without == "" {
			continue
		}
		if says(t, err, nil, "on leases", "namespace default", "rbac.yaml"); !permanent(err) {
			t.Errorf("without %s it is not permanent: %v", without, err)
		}
	}
}

// If the context of a request ends, the outcome is unknown. net/http reports the cause of the context,
// which can have a Code, for example if the context is bound to another lease. Even then, the error of
// the request has none. SPEC A1.
func TestCauseOfTheContextIsNoRefusal(t *testing.T) {
	acquires := func(ctx context.Context, s *kubelease.Store) error {
		return second(s.Authority().Do(ctx, "job", acquire(idA, time.Minute)))
	}
	cause := &lease.LostError{Name: "other", Reason: lease.ErrBroken, Err: context.Canceled}
	for _, c := range []struct {
		spec    string // of the object, as in fake
		hangs   string // the method of the request that gets no answer
		request func(context.Context, *kubelease.Store) error
	}{
		{"{}", "GET", acquires}, {"", "POST", acquires}, {"{}", "PUT", acquires},
		{"{}", "GET", func(ctx context.Context, s *kubelease.Store) error { return second(s.Watch(ctx, "job")) }},
		{"{}", "GET", func(ctx context.Context, s *kubelease.Store) (failed error) {
			for _, err := range s.List(ctx, "") {
				failed = err
			}
			return failed
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := fake(t, c.spec, func(q *http.Request) bool { return q.Method == c.hangs })
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(cause) })
			err := c.request(ctx, s)
			if lease.CodeOf(err).Refusal() || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), cause.Error()) {
				t.Errorf("%s: %v, with the code %v", c.hangs, err, lease.CodeOf(err))
			}
		})
	}
}

// fake returns a store at a fake API server that does not answer some requests. The server has an object with the
// given spec, or no object if spec is empty.
func fake(t *testing.T, spec string, hangs func(*http.Request) bool) *kubelease.Store {
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
		code, body := http.StatusOK, `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"job","namespace":"default","uid":"u","resourceVersion":"7"},"spec":`+spec+`}`
		switch {
		case strings.HasSuffix(q.URL.Path, "/leases"):
			body = `{"kind":"LeaseList","apiVersion":"coordination.k8s.io/v1","metadata":{"resourceVersion":"7"},"items":[]}`
		case spec == "":
			code, body = http.StatusNotFound, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
		}
		return answer(q, code, body), nil
	})
	c, err := coordinationclient.NewForConfigAndClient(kubelease.ClientConfig(&rest.Config{Host: "http://fake.test"}), &http.Client{Transport: answers})
	if err != nil {
		t.Fatal(err)
	}
	return store(t, c, nil)
}

// answer returns an answer of an API server in JSON.
func answer(q *http.Request, status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: q}
}
