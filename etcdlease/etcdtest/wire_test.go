package etcdtest

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/histories"
	"github.com/fencedlease/lease/observe"
)

// A wire sees the exchanges between clients and etcd. While it has a history, it adds the exchanges to
// that. It reads the requests and the answers themselves, so it depends only on the text form of a record.
type wire struct {
	history atomic.Pointer[histories.History]
}

func (w *wire) option() grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, o ...grpc.CallOption) error {
		e := histories.Exchange{Call: time.Now()}
		err := invoke(ctx, method, req, reply, cc, o...)
		e.Return = time.Now()
		if h := w.history.Load(); h != nil && read(&e, req, reply, err) {
			h.Add(e)
		}
		return err
	})
}

// read reports whether an exchange showed a version, or has possibly written one.
func read(e *histories.Exchange, req, reply any, err error) bool {
	switch req := req.(type) {
	case *etcdserverpb.RangeRequest:
		if err != nil {
			return false
		}
		e.Snap = shown(reply.(*etcdserverpb.RangeResponse).Kvs)
		return e.Snap.Version != ""
	case *etcdserverpb.TxnRequest:
		replaced := req.Compare[0].GetModRevision()
		e.Swap, e.Old.Version = true, strconv.FormatInt(replaced, 10)
		e.Next = record(req.Success[0].GetRequestPut().Value)
		if e.Err = err; err != nil {
			return true
		}
		res := reply.(*etcdserverpb.TxnResponse)
		if !res.Succeeded {
			e.Err = lease.ErrConflict
			e.Snap = shown(res.Responses[0].GetResponseRange().Kvs)
			return true
		}
		e.Snap = lease.Snapshot{Record: e.Next, Version: strconv.FormatInt(res.Header.Revision, 10)}
		if replaced == 0 {
			e.Snap.Record.Epoch = uint64(res.Header.Revision) - 1
		}
		return true
	}
	return false
}

// shown returns the version of a key in an answer.
func shown(kvs []*mvccpb.KeyValue) lease.Snapshot {
	if len(kvs) == 0 {
		return lease.Snapshot{}
	}
	r := record(kvs[0].Value)
	r.Epoch = max(r.Epoch, uint64(kvs[0].CreateRevision)-1)
	return lease.Snapshot{Record: r, Version: strconv.FormatInt(kvs[0].ModRevision, 10)}
}

func record(value []byte) lease.Record {
	var k observe.Kept
	if err := k.UnmarshalJSON(value); err != nil {
		panic(fmt.Sprintf("%s is on the wire: %v", value, err))
	}
	return k.Record
}
