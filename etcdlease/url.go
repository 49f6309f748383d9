package etcdlease

import (
	"context"
	"os"
	"strings"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/open"
)

// A program that imports this package can open etcd:// URLs with [open.Store]. The credentials are taken from
// ETCDCTL_USER (name:password, or the name with ETCDCTL_PASSWORD), ETCDCTL_CACERT, ETCDCTL_CERT and
// ETCDCTL_KEY.
func init() {
	open.Register("etcd", "etcd://HOST:PORT[,HOST:PORT...][/PREFIX]", openURL)
}

type opened struct {
	*Store
	client *clientv3.Client
}

func (o opened) Close() error { return o.client.Close() }

func openURL(_ context.Context, url string) (open.Leases, error) {
	hosts, prefix, err := open.Hosts(url)
	if err != nil {
		return nil, err
	}
	c := ClientConfig(hosts...)
	c.Logger = zap.NewNop() // it would print each failed request, besides the error
	if user := os.Getenv("ETCDCTL_USER"); user != "" {
		var ok bool
		if c.Username, c.Password, ok = strings.Cut(user, ":"); !ok {
			c.Password = os.Getenv("ETCDCTL_PASSWORD")
		}
	}
	tls := transport.TLSInfo{
		TrustedCAFile: os.Getenv("ETCDCTL_CACERT"), CertFile: os.Getenv("ETCDCTL_CERT"), KeyFile: os.Getenv("ETCDCTL_KEY"),
	}
	if tls.TrustedCAFile != "" || tls.CertFile != "" {
		if c.TLS, err = tls.ClientConfig(); err != nil {
			return nil, lease.Permanent(err)
		}
	}
	client, err := clientv3.New(c)
	if err != nil {
		return nil, err
	}
	s, err := New(client, &Options{Prefix: prefix})
	if err != nil {
		client.Close()
		return nil, err
	}
	return opened{s, client}, nil
}
