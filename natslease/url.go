package natslease

import (
	"context"
	"os"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fencedlease/lease/open"
)

// A program that imports this package can open nats:// URLs with [open.Store], which connects at once. The
// credentials are taken from NATS_CREDS, or from NATS_USER and NATS_PASSWORD.
func init() {
	open.Register("nats", "nats://HOST:PORT[,HOST:PORT...][/BUCKET]", openURL)
}

type opened struct {
	*Store
	nc *nats.Conn
}

func (o opened) Close() error {
	o.nc.Close()
	return nil
}

func openURL(ctx context.Context, url string) (open.Leases, error) {
	hosts, bucket, err := open.Hosts(url)
	if err != nil {
		return nil, err
	}
	o := ConnectOptions()
	if file := os.Getenv("NATS_CREDS"); file != "" {
		o = append(o, nats.UserCredentials(file))
	} else if user := os.Getenv("NATS_USER"); user != "" {
		o = append(o, nats.UserInfo(user, os.Getenv("NATS_PASSWORD")))
	}
	for i, h := range hosts {
		hosts[i] = "nats://" + h
	}
	nc, err := nats.Connect(strings.Join(hosts, ","), o...)
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc)
	if err == nil {
		var s *Store
		if s, err = New(ctx, js, &Options{Bucket: bucket}); err == nil {
			return opened{s, nc}, nil
		}
	}
	nc.Close()
	return nil, err
}
