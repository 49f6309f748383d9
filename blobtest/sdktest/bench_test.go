package sdktest

import (
	"testing"

	"github.com/fencedlease/lease/blobtest"
)

// BenchmarkLease sends lease operations to the double and to Azurite, over loopback, with the same client,
// signature and requests. The goal is a tenth of Azurite's time.
func BenchmarkLease(b *testing.B) {
	p := newPair(b)
	srv, err := blobtest.NewServer(nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(srv.Close)
	for _, to := range []struct{ name, endpoint string }{{"double", srv.URL}, {"azurite", p.azurite}} {
		s := &side{base: to.endpoint + "/box", sas: p.sas}
		for _, o := range []op{use("create", "", "PUT", "?restype=container", ""), put(""), acquire(onBlob, "A", "60")} {
			if a, err := s.do(b.Context(), o); err != nil || a.status != 201 {
				b.Fatal(to.name, o.name, a.status, err)
			}
		}
		for _, o := range []struct {
			op     op
			status int
		}{{renew(onBlob, "A"), 200}, {acquire(onBlob, "B", "15"), 409}} {
			b.Run(o.op.verb+"/"+to.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if a, err := s.do(b.Context(), o.op); err != nil || a.status != o.status {
						b.Fatal(a.status, err)
					}
				}
			})
			b.Run(o.op.verb+"-parallel/"+to.name, func(b *testing.B) {
				b.ReportAllocs()
				b.SetParallelism(4)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if a, err := s.do(b.Context(), o.op); err != nil || a.status != o.status {
							b.Error(a.status, err)
							return
						}
					}
				})
			})
		}
	}
	client.CloseIdleConnections()
}
